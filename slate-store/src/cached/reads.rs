use std::sync::atomic::{AtomicU64, Ordering};

use crate::CacheReads;

/// What answered a read, whether or not the key has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    InCache,
    InStore,
}

/// Number of counters. Threads that read different keys rarely share one.
const STRIPES: usize = 32;

/// Counts reads, in several counters, so that threads do not wait for each other's cache lines.
#[derive(Default)]
pub(super) struct ReadCounters([Stripe; STRIPES]);

#[derive(Default)]
#[repr(align(64))]
struct Stripe {
    hits: AtomicU64,
    misses: AtomicU64,
}

impl ReadCounters {
    /// Counts a read of a key with this hash.
    #[inline]
    pub(super) fn count(&self, hash: u64, found: Found) {
        let stripe = usize::try_from(hash >> 32).unwrap_or_default() % STRIPES;
        if let Some(stripe) = self.0.get(stripe) {
            let counter = match found {
                Found::InCache => &stripe.hits,
                Found::InStore => &stripe.misses,
            };
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn sum(&self) -> CacheReads {
        self.0.iter().fold(CacheReads::default(), |sum, stripe| CacheReads {
            hits: sum.hits.saturating_add(stripe.hits.load(Ordering::Relaxed)),
            misses: sum.misses.saturating_add(stripe.misses.load(Ordering::Relaxed)),
            ..sum
        })
    }
}
