use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    address::Address,
    cluster::Cluster,
    drop, latest,
    options::Options,
    safepoint,
    snapshot::TikvSnapshot,
    transaction::{MAX_TRANSACTION_BYTES, MAX_TRANSACTION_KEYS, TikvTransaction},
};
use crate::{Capabilities, Context, Error, Keyspace, Result, Size, SizeDetail, Store, Version};

/// A database in a TiKV cluster. Any number of processes can have it open.
pub struct TikvStore {
    pub(super) cluster: Arc<Cluster>,
}

pub(super) const CAPABILITIES: Capabilities = Capabilities {
    name: "tikv",
    persistent: true,
    remote: true,
    max_key: super::MAX_KEY,
    max_transaction_bytes: Some(MAX_TRANSACTION_BYTES),
    max_transaction_keys: Some(MAX_TRANSACTION_KEYS),
    ranges_conflict: false,
    shared_guards: false,
    commit_versions: false,
    ..Capabilities::MINIMAL
};

impl TikvStore {
    /// Connects to the cluster. A database exists as soon as something is written to it.
    ///
    /// # Errors
    /// [`Io`](Error::Io) if no placement driver answers within [`Options::patience`].
    pub fn open(address: &Address, options: &Options) -> Result<Self> {
        let cluster = Cluster::connect(address, options)?;
        Ok(Self { cluster })
    }
}

impl Store for TikvStore {
    type Snapshot = TikvSnapshot;
    type Transaction = TikvTransaction;

    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    fn snapshot(&self) -> Result<TikvSnapshot> {
        let (cluster, opened) = (Arc::clone(&self.cluster), Instant::now());
        let now = self.cluster.runtime.wait(async move { cluster.now().await })?;
        Ok(TikvSnapshot::new(Arc::clone(&self.cluster), now, opened, None))
    }

    fn latest(&self, keys: &[(Keyspace, &[u8])]) -> Result<Option<Vec<Option<Vec<u8>>>>> {
        if keys.iter().any(|(_, key)| key.len() > super::MAX_KEY) {
            return Ok(None);
        }
        let stored: Vec<Vec<u8>> =
            keys.iter().map(|(keyspace, key)| self.cluster.layout.entry(*keyspace, key)).collect();
        let (regions, wanted) = (Arc::clone(&self.cluster.regions), stored.clone());
        let found = self.cluster.runtime.wait(async move { Ok(latest::read(regions, wanted).await) })?;
        let Some(mut found) = found else { return Ok(None) };
        let value = |key: &Vec<u8>| match found.remove(key) {
            Some(stored) => latest::value(stored).map(Some),
            None => Some(None),
        };
        Ok(stored.iter().map(value).collect())
    }

    fn begin(&self, wait: Duration) -> Result<TikvTransaction> {
        let (cluster, opened) = (Arc::clone(&self.cluster), Instant::now());
        let begun = self.cluster.runtime.wait(async move { cluster.begin(wait).await })?;
        Ok(TikvTransaction::new(Arc::clone(&self.cluster), begun, opened))
    }

    fn drop_keyspace(&self, keyspace: Keyspace, _: Duration) -> Result<Version> {
        let cluster = Arc::clone(&self.cluster);
        let dropped = self.cluster.runtime.wait(drop::drop_keyspace(cluster, keyspace))?;
        match dropped {
            Some(version) => {
                self.cluster.dropped().insert(keyspace, version);
                Ok(version)
            }
            None => Ok(Version(self.snapshot()?.at)),
        }
    }

    /// Every commit is on the devices of a majority of nodes.
    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn backup(&self, _: &Path) -> Result<()> {
        Err(Error::Unsupported(Box::new(Context::new("back up the cluster with TiKV's own tool, br"))))
    }

    /// Garbage collection is for the whole cluster. Only this call begins it, and TiDB if that uses the same cluster. First waits until all commits
    /// have ended that may have begun before the safepoint was stored: five minutes with the default options. So no process may have a longer
    /// [patience](Options::patience) or [timeout](Options::request_timeout) than the caller's. Versions that a registered safepoint protects, such
    /// as that of TiKV's backup, are not removed.
    ///
    /// Fails with [`Unsupported`](Error::Unsupported) if `keep` is less than the [age](Options::unchecked_age) from which on snapshots check the
    /// safepoint.
    fn collect_garbage(&self, keep: Duration) -> Result<()> {
        let shortest = self.cluster.options.unchecked_age;
        if keep < shortest {
            let text = format!(
                "garbage collection that keeps less than {shortest:?}: younger snapshots would read incomplete data"
            );
            return Err(Error::Unsupported(Box::new(Context::new(text))));
        }
        let (cluster, grace) = (Arc::clone(&self.cluster), self.cluster.longest_commit());
        self.cluster.runtime.wait(safepoint::collect(cluster, keep, grace)).map(drop)
    }

    fn size(&self, _: SizeDetail) -> Result<Size> {
        Ok(Size::default())
    }

    fn round_trips(&self) -> Option<u64> {
        Some(self.cluster.round_trips())
    }

    fn requests(&self) -> Option<u64> {
        Some(self.cluster.requests())
    }
}
