//! Gathers statistics from a snapshot and writes them in a separate transaction. User transactions neither scan a
//! collection for them, nor wait for them, nor conflict with them.

use std::{sync::Arc, time::Duration};

use slate_store::{Durability, Store, Transaction};

use super::backend::Backend;
use crate::{
    Result,
    catalog::{Catalog, CollectionInfo, CollectionStatistics},
    metrics::trace,
    write::StaleCollection,
};

/// Maximum number of keys of a keyspace that are read after a commit that made its statistics stale. Bounds the latency that
/// this adds to the commit. The statistics of larger keyspaces are extended, see [`CollectionStatistics::gather`].
const MAX_KEYS: u64 = 65_536;

/// Maximum number of keys that are read per record that the commit added, so that the work stays proportional to the commit.
const MAX_KEYS_PER_RECORD: u64 = 4;

impl<S: Store> Backend<S> {
    /// Gathers statistics again that a commit has made stale. They stay stale if another writer is active.
    pub(super) fn refresh_statistics(&self, stale: &[StaleCollection]) {
        for StaleCollection { records, growth } in stale {
            let max_keys = growth.unsigned_abs().saturating_mul(MAX_KEYS_PER_RECORD).max(MAX_KEYS);
            // The commit has succeeded, so a failure here is ignored.
            let _ = self.renew_statistics(|catalog| catalog.owner(*records), max_keys, Duration::ZERO);
        }
    }

    /// Gathers the statistics of a collection from all its keys. Does nothing if the collection does not exist.
    pub(super) fn gather_statistics(&self, collection: &str, wait: Duration) -> Result<()> {
        self.renew_statistics(|catalog| catalog.collection(collection), u64::MAX, wait)
    }

    fn renew_statistics(
        &self,
        find: impl FnOnce(&Catalog) -> Option<&Arc<CollectionInfo>>,
        max_keys: u64,
        wait: Duration,
    ) -> Result<()> {
        let (view, catalog) = self.last()?;
        let Some(collection) = find(&catalog) else { return Ok(()) };
        let growth = self.shared.staleness.growth(collection.records);
        let statistics = CollectionStatistics::gather(&view, collection, growth, max_keys)?;
        drop(view);
        let mut transaction = self.store.begin(wait)?;
        statistics.store(&mut transaction, collection)?;
        let changed = std::iter::once(&*collection.name);
        self.shared.catalogs.change(changed, || Ok(transaction.commit(Durability::Deferred)?))?;
        self.shared.staleness.included(collection.records, growth);
        trace::statistics(&collection.name);
        Ok(())
    }
}
