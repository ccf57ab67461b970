//! Shared guards that do not conflict with each other.
//!
//! TiKV has no shared locks. So a guarded key of keyspace 0 has [`STRIPES`] further keys. A shared guard writes one of them. A write of the key, or
//! an exclusive guard, writes all of them, so it conflicts with every shared guard. Two shared guards conflict only if they use the same stripe.
//! The transactions of one process avoid that: each takes a stripe that is free and that was not written after its snapshot. Of these it takes the
//! one that it has written last: so consecutive transactions reuse one stripe, and the others stay free for long transactions. Processes begin at
//! random stripes. If two of them use the same one, a transaction of one conflicts. Its process leaves that stripe to the other one: later
//! transactions prefer stripes on which none has conflicted, or not for the longest time.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::random;

/// Number of stripes of a guarded key: as many transactions can commit at the same time without conflict, and a change of a definition writes as
/// many keys.
pub(super) const STRIPES: u8 = 32;

pub(super) struct Stripes(Mutex<Vec<Stripe>>);

#[derive(Clone, Copy)]
struct Stripe {
    number: u8,
    /// The timestamp of the last known commit that wrote it.
    last: u64,
    /// The timestamp of the last known commit of another process; 0 if none is known.
    of_others: u64,
    is_taken: bool,
}

impl Default for Stripes {
    fn default() -> Self {
        let first = u8::try_from(random() % u64::from(STRIPES)).unwrap_or_default();
        let stripe = |at| Stripe { number: (first + at) % STRIPES, last: 0, of_others: 0, is_taken: false };
        Self(Mutex::new((0..STRIPES).map(stripe).collect()))
    }
}

impl Stripes {
    /// Takes a stripe for a transaction with a snapshot of the timestamp `began`. If all stripes are taken,
    /// transactions share one and may conflict.
    pub(super) fn take(&self, began: u64) -> Taken<'_> {
        let mut stripes = self.lock();
        let mut best: Option<&mut Stripe> = None;
        for stripe in stripes.iter_mut() {
            // Prefers free stripes; then those not written after the snapshot, first those that other processes do not use, of these the last
            // written; then the others, the oldest first.
            let rank = |stripe: &Stripe| match stripe.last <= began {
                true => (!stripe.is_taken, true, u64::MAX - stripe.of_others, stripe.last),
                false => (!stripe.is_taken, false, u64::MAX - stripe.last, 0),
            };
            if best.as_ref().is_none_or(|best| rank(stripe) > rank(best)) {
                best = Some(stripe);
            }
        }
        let number = best.map_or(0, |stripe| {
            stripe.is_taken = true;
            stripe.number
        });
        Taken { stripes: self, number, written: None }
    }

    /// Records that another process has written a stripe.
    pub(super) fn written(&self, number: u8, at: u64) {
        if let Some(stripe) = self.lock().iter_mut().find(|stripe| stripe.number == number) {
            stripe.last = stripe.last.max(at);
            stripe.of_others = stripe.of_others.max(at);
        }
    }

    /// Locks the stripes. A poisoned lock is sound: no code under it can panic between two dependent updates.
    fn lock(&self) -> MutexGuard<'_, Vec<Stripe>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stripe taken by a transaction. Dropping this releases it.
pub(super) struct Taken<'s> {
    stripes: &'s Stripes,
    pub(super) number: u8,
    /// The timestamp at which the transaction wrote it; `None` if it did not.
    pub(super) written: Option<u64>,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if let Some(stripe) = self.stripes.lock().iter_mut().find(|stripe| stripe.number == self.number) {
            stripe.is_taken = false;
            stripe.last = stripe.last.max(self.written.unwrap_or_default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_that_follow_each_other_use_one_stripe_and_open_ones_find_others() {
        let stripes = Stripes::default();
        let mut used = Vec::new();
        for began in 1..100 {
            let mut taken = stripes.take(began * 10);
            taken.written = Some(began * 10 + 5);
            used.push(taken.number);
        }
        used.dedup();
        assert_eq!(used.len(), 1, "one after the other");
        let old: Vec<Taken<'_>> = (1..STRIPES).map(|_| stripes.take(1)).collect();
        let numbers: std::collections::BTreeSet<u8> = old.iter().map(|taken| taken.number).collect();
        assert_eq!(
            (old.len(), numbers.len()),
            (usize::from(STRIPES) - 1, usize::from(STRIPES) - 1),
            "at the same time"
        );
        assert!(!numbers.contains(&used[0]), "the stripe that was written later would conflict");
        drop(old);
        stripes.written(used[0], 5_000);
        for (began, why) in [(4_000, "another process has written it"), (6_000, "that process will write it again")] {
            assert_ne!(stripes.take(began).number, used[0], "{why}");
        }
        for at in 0..STRIPES {
            stripes.written((used[0] + at) % STRIPES, 7_000 + u64::from(at));
        }
        assert_eq!(
            stripes.take(8_000).number,
            used[0],
            "of stripes that others use, that which was not written for the longest time"
        );
    }
}
