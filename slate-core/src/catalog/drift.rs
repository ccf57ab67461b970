use std::sync::{Mutex, PoisonError};

use ahash::AHashMap;

/// By how many records each collection has grown, or shrunk, since its statistics were gathered: what this process has
/// committed since it opened the database.
#[derive(Debug, Default)]
pub(crate) struct Drift(Mutex<AHashMap<Box<str>, i64>>);

/// Collections smaller than this need no statistics: a probe counts them.
const LEAST: u64 = 1_000;

impl Drift {
    /// Whether statistics over `gathered` records are worth gathering again, once a transaction that adds `added`
    /// commits.
    pub(crate) fn is_far(&self, collection: &str, gathered: u64, added: i64) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(collection).copied().unwrap_or_default();
        known.saturating_add(added).unsigned_abs() > LEAST.max(gathered / 2)
    }

    /// Notes a commit.
    pub(crate) fn add(&self, collection: &str, added: i64) {
        let mut drifts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match drifts.get_mut(collection) {
            Some(drift) => *drift = drift.saturating_add(added),
            None => drop(drifts.insert(collection.into(), added)),
        }
    }

    /// Notes a commit that gathered the statistics anew.
    pub(crate) fn reset(&self, collection: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(collection);
    }
}
