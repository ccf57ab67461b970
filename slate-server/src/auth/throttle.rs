use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    net::{IpAddr, Ipv6Addr},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use super::UserName;
use crate::listener::Address;

/// Failed logins of one user from one address that are allowed before the user must wait.
const OF_A_USER: u32 = 10;

/// Failed logins from one address, of all users together, that are allowed before its clients must wait.
const OF_AN_ADDRESS: u32 = 50;

/// Time after which one failure no longer counts.
const FORGIVENESS: Duration = Duration::from_secs(6);

/// Maximum number of entries, for addresses and for users of an address: some hundred kilobytes.
const MAX_ENTRIES: usize = 4096;

/// Limits failed logins, by address and by user of an address: ten at once and then ten a minute for a user. A user is never locked out from other
/// addresses, because otherwise any client could cause that.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    failures: Mutex<HashMap<Key, Failures>>,
    /// Hashes user names. Its keys are random, so that no client can find two names with the same hash.
    names: RandomState,
}

/// An address, and the hash of a user's name, because a client can send names of any length; `None` for all users of the address.
type Key = (LoginOrigin, Option<u64>);

/// The source of a client. The IPv6 addresses that one customer usually has count as one source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum LoginOrigin {
    Ip(IpAddr),
    Local,
}

#[derive(Clone, Copy, Debug)]
struct Failures {
    count: u32,
    since: Instant,
}

impl Failures {
    /// Returns the number of failures that still count.
    fn at(self, now: Instant) -> u32 {
        let forgotten = now.saturating_duration_since(self.since).as_secs() / FORGIVENESS.as_secs();
        self.count.saturating_sub(u32::try_from(forgotten).unwrap_or(u32::MAX))
    }
}

impl Throttle {
    /// Returns how long the user must wait before the next attempt to log in; `None` if not at all.
    pub(crate) fn wait(&self, from: &Address, user: &UserName) -> Option<Duration> {
        self.wait_at(Instant::now(), from, user)
    }

    fn wait_at(&self, now: Instant, from: &Address, user: &UserName) -> Option<Duration> {
        let failures = self.lock();
        let exceeds = |key: &Key, most: u32| failures.get(key).is_some_and(|failures| failures.at(now) >= most);
        let source = source(from);
        let is_over = exceeds(&(source, Some(self.digest(user))), OF_A_USER) || exceeds(&(source, None), OF_AN_ADDRESS);
        is_over.then_some(FORGIVENESS)
    }

    /// Records a failed login.
    pub(crate) fn failed(&self, from: &Address, user: &UserName) {
        self.failed_at(Instant::now(), from, user);
    }

    fn failed_at(&self, now: Instant, from: &Address, user: &UserName) {
        let mut failures = self.lock();
        let source = source(from);
        for key in [(source, Some(self.digest(user))), (source, None)] {
            if failures.len() >= MAX_ENTRIES && !failures.contains_key(&key) {
                // Removes the entries with the fewest failures, so that an attacker with many addresses cannot displace the entry of an address
                // with many failures.
                let least = failures.values().map(|known| known.at(now)).min().unwrap_or_default();
                failures.retain(|_, known| known.at(now) > least);
            }
            let known = failures.entry(key).or_insert(Failures { count: 0, since: now });
            *known = Failures { count: known.at(now).saturating_add(1), since: now };
        }
    }

    /// Removes the failures of a user who has logged in.
    pub(crate) fn succeeded(&self, from: &Address, user: &UserName) {
        self.lock().remove(&(source(from), Some(self.digest(user))));
    }

    fn digest(&self, user: &UserName) -> u64 {
        self.names.hash_one(user)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Failures>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn source(address: &Address) -> LoginOrigin {
    match address {
        Address::Tcp(address) => LoginOrigin::Ip(match address.ip().to_canonical() {
            IpAddr::V6(ip) => {
                let [a, b, c, d, ..] = ip.segments();
                Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
            }
            ip => ip,
        }),
        #[cfg(unix)]
        Address::Unix(_) => LoginOrigin::Local,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: &str) -> Address {
        Address::Tcp(address.parse().unwrap())
    }

    #[test]
    fn a_user_is_limited_by_address_and_only_there() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        let (ada, bob) = (UserName::new("ada", "shop"), UserName::new("bob", "shop"));
        let (near, far) = (at("10.0.0.1:1"), at("10.0.0.2:1"));
        for _ in 0..OF_A_USER {
            assert_eq!(throttle.wait_at(now, &near, &ada), None);
            throttle.failed_at(now, &near, &ada);
        }
        // The port does not matter.
        assert!(throttle.wait_at(now, &at("10.0.0.1:2"), &ada).is_some());
        assert_eq!(throttle.wait_at(now, &far, &ada), None);
        assert_eq!(throttle.wait_at(now, &near, &bob), None);
        assert_eq!(throttle.wait_at(now + FORGIVENESS, &near, &ada), None);
        throttle.succeeded(&near, &ada);
        assert_eq!(throttle.wait_at(now, &near, &ada), None);
    }

    #[test]
    fn an_entry_takes_the_same_memory_whatever_the_name() {
        fn owns_nothing<T: Copy>() -> usize {
            size_of::<T>()
        }
        assert!(owns_nothing::<(Key, Failures)>() * MAX_ENTRIES < 512 << 10);
    }

    #[test]
    fn an_address_is_limited_for_all_users_and_memory_is_bounded() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        let (near, same) = (at("[2001:db8::1]:1"), at("[2001:db8::ffff]:1"));
        for user in 0..OF_AN_ADDRESS {
            throttle.failed_at(now, &near, &UserName::new(user.to_string(), "shop"));
        }
        let ada = UserName::new("ada", "shop");
        assert!(throttle.wait_at(now, &same, &ada).is_some());
        assert_eq!(throttle.wait_at(now, &at("[2001:db9::1]:1"), &ada), None);
        for n in 0..10_000_u16 {
            let [high, low] = n.to_be_bytes();
            throttle.failed_at(now, &at(&format!("10.0.{high}.{low}:1")), &ada);
        }
        assert!(throttle.lock().len() <= MAX_ENTRIES);
        assert!(throttle.wait_at(now, &near, &ada).is_some());
    }
}
