//! Gathers statistics from a snapshot and writes them in a transaction of their own. No user's transaction scans a
//! collection for them, waits for them or conflicts with them.

use std::time::Duration;

use slate_store::{Durability, Store, Transaction};

use super::backend::Backend;
use crate::{
    Result,
    catalog::{CollectionInfo, CollectionStatistics},
    write::StaleCollection,
};

/// The most keys of a keyspace that are read after a commit made its statistics stale. It bounds the latency that the
/// commit's caller sees. The statistics of larger keyspaces are extended, see [`CollectionStatistics::gather`].
const MAX_KEYS: u64 = 65_536;

/// After a commit that added many records, the most keys that are read for each of them: the work stays in proportion to
/// the commit's own.
const MAX_KEYS_PER_RECORD: u64 = 4;

impl<S: Store> Backend<S> {
    /// Renews statistics that a commit has made stale. Where another writer is in the way, they stay stale.
    pub(super) fn refresh_statistics(&self, stale: &[StaleCollection]) {
        for StaleCollection { records, growth } in stale {
            let max_keys = growth.unsigned_abs().saturating_mul(MAX_KEYS_PER_RECORD).max(MAX_KEYS);
            let is_stale = |collection: &CollectionInfo| collection.records == *records;
            // The commit has succeeded; this may fail.
            let _ = self.renew_statistics(is_stale, max_keys, Duration::ZERO);
        }
    }

    /// Gathers the statistics of a collection from all of its keys; of one that does not exist, none.
    pub(super) fn gather_statistics(&self, collection: &str, wait: Duration) -> Result<()> {
        self.renew_statistics(|found| &*found.name == collection, u64::MAX, wait)
    }

    fn renew_statistics(
        &self,
        is_wanted: impl Fn(&CollectionInfo) -> bool,
        max_keys: u64,
        wait: Duration,
    ) -> Result<()> {
        let (view, catalog) = self.last()?;
        let Some(collection) = catalog.collections().find(|collection| is_wanted(collection)) else { return Ok(()) };
        let growth = self.shared.staleness.growth(collection.records);
        let statistics = CollectionStatistics::gather(&view, collection, growth, max_keys)?;
        drop(view);
        let mut transaction = self.store.begin(wait)?;
        statistics.store(&mut transaction, collection)?;
        self.shared.catalogs.change(|| Ok(transaction.commit(Durability::Deferred)?))?;
        self.shared.staleness.included(collection.records, growth);
        Ok(())
    }
}
