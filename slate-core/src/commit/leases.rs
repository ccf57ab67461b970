//! Work that at most one process at a time may do, on a store that several processes write to: gathering the statistics of a collection, and
//! deleting the keys of a dropped keyspace.
//!
//! ```text
//! the holder                                   other processes
//! ──────────                                   ───────────────
//! writes its value under a key of the catalog  find the value, and leave the work to its holder
//! replaces it every RENEWED_EVERY              note when they have first seen it
//! removes it with the last write of the work
//! or ends without that                         find the same value for TERM: the next one to come takes the lease
//! ```
//!
//! If two processes take a lease at the same time, one of them conflicts. A process that was suspended for longer than [`TERM`] and then
//! continues works beside the next holder: the work must be harmless if two do it. Clocks of different machines are not compared.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher, Hasher, RandomState},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// How long a process respects a lease after it has first seen its value. Some renewals may fail meanwhile.
pub(crate) const TERM: Duration = Duration::from_secs(30);

/// How often a holder renews its lease. Most work ends before the first renewal.
pub(crate) const RENEWED_EVERY: Duration = Duration::from_secs(10);

/// Beyond this number of values, those first seen longer ago than [`REMEMBERED_FOR`] are forgotten. A forgotten one is respected for another [`TERM`].
const REMEMBERED: usize = 1_024;
const REMEMBERED_FOR: Duration = Duration::from_secs(600);

/// The value of a lease's key: the number of its holder, and a number that the holder has given to no other value, both big-endian.
pub(crate) type LeaseValue = [u8; 16];

/// The leases of other processes, as this process has seen them.
#[derive(Debug)]
pub(crate) struct Leases {
    /// A random number of this handle of the database. Two handles in one process count as two processes.
    holder: u64,
    /// The number of the next value.
    next: AtomicU64,
    seen: Mutex<BTreeMap<Box<[u8]>, Seen>>,
}

#[derive(Debug)]
struct Seen {
    value: Box<[u8]>,
    first: Instant,
}

impl Default for Leases {
    fn default() -> Self {
        Self { holder: random_number(), next: AtomicU64::default(), seen: Mutex::default() }
    }
}

impl Leases {
    /// Returns a value for a lease that this process takes or renews. No two values are equal, so that other processes notice each of them.
    pub(crate) fn value(&self) -> LeaseValue {
        let mut value = LeaseValue::default();
        let (holder, number) = value.split_at_mut(size_of::<u64>());
        holder.copy_from_slice(&self.holder.to_be_bytes());
        number.copy_from_slice(&self.next.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        value
    }

    /// Whether this is a value of this process.
    pub(crate) fn is_own(&self, value: &[u8]) -> bool {
        value.starts_with(&self.holder.to_be_bytes())
    }

    /// Returns whether another process holds the lease with this value. It does not if it has released the lease, or has not renewed it for
    /// [`TERM`]: it has then probably ended.
    pub(crate) fn is_held(&self, key: &[u8], value: &[u8]) -> bool {
        if value.is_empty() || self.is_own(value) {
            return false;
        }
        let now = Instant::now();
        // No code under this lock can panic between two dependent updates.
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() > REMEMBERED {
            seen.retain(|_, seen| now.duration_since(seen.first) < REMEMBERED_FOR);
        }
        let seen = seen.entry(key.into()).or_insert_with(|| Seen { value: value.into(), first: now });
        if *seen.value != *value {
            *seen = Seen { value: value.into(), first: now };
        }
        now.duration_since(seen.first) < TERM
    }
}

/// Returns a number that no other call, of any process, is likely to return.
pub(crate) fn random_number() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_that_is_not_renewed_stands_for_a_term_after_it_was_first_seen() {
        let (here, there) = (Leases::default(), Leases::default());
        let (first, renewed) = (there.value(), there.value());
        assert!(here.is_held(b"a", &first) && here.is_held(b"a", &first) && here.is_held(b"b", &first));
        let long_ago = Instant::now().checked_sub(TERM).unwrap();
        here.seen.lock().unwrap().get_mut(&b"a"[..]).unwrap().first = long_ago;
        assert!(!here.is_held(b"a", &first) && here.is_held(b"b", &first));
        assert!(here.is_held(b"a", &renewed), "it was renewed");
        assert!(!here.is_held(b"c", b""), "it was given up");
        assert!(!there.is_held(b"c", &renewed) && there.is_own(&renewed) && !here.is_own(&renewed));
    }
}
