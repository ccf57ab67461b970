//! Drops of keyspaces: in steps of a bounded number of keys, each a transaction. Open snapshots still show the keys, and a crash leaves
//! the rest for the next drop.

use std::sync::Arc;

use tikv_client::TimestampExt;

use super::{cluster::Cluster, error, layout::Area, read};
use crate::{Keyspace, Result, Version};

/// The keys that one step deletes.
const STEP: u32 = 2048;

/// How often a step is repeated that conflicts with a transaction that wrote to the keyspace.
const ATTEMPTS: u32 = 20;

/// Deletes all keys of a keyspace. Returns the version from which on it is empty; `None` if it was.
pub(super) async fn drop_keyspace(cluster: Arc<Cluster>, keyspace: Keyspace) -> Result<Option<Version>> {
    let mut last = None;
    for area in [Area::Entries, Area::Chunks] {
        let range = cluster.layout.all(area, keyspace);
        let mut conflicts = 0;
        loop {
            match step(&cluster, range.clone()).await {
                Ok(None) => break,
                Ok(Some(version)) => (last, conflicts) = (Some(version), 0),
                Err(error) if error.is_retryable() && conflicts < ATTEMPTS => conflicts += 1,
                Err(error) => return Err(error),
            }
        }
    }
    Ok(last)
}

async fn step(cluster: &Arc<Cluster>, range: (Vec<u8>, Vec<u8>)) -> Result<Option<Version>> {
    let now = cluster.now().await?;
    cluster.count(1);
    let keys = read::keys(Arc::clone(cluster), now, range, STEP).await?;
    if keys.is_empty() {
        return Ok(None);
    }
    let mut transaction = cluster.begin(std::time::Duration::ZERO).await?;
    let deletes = keys.into_iter().map(|key| tikv_client::transaction::Mutation::Delete(key.into()));
    let written = transaction.batch_mutate(deletes).await;
    cluster.count(3);
    let committed = match written {
        Ok(()) => transaction.commit().await,
        Err(error) => Err(error),
    };
    match committed {
        Ok(at) => Ok(Some(Version(at.map_or(now, |at| at.version())))),
        Err(failed) => {
            let failure = error::of_commit(failed, &cluster.layout);
            if failure.is_certain {
                // Locks that stay behind expire.
                let _ = transaction.rollback().await;
            }
            Err(failure.error)
        }
    }
}
