//! Drops of keyspaces: in steps of a bounded number of keys, each a transaction. Open snapshots still show the keys, and a crash leaves
//! the rest for the next drop.

use std::sync::Arc;

use tikv_client::transaction::Mutation;

use super::{after, cluster::Cluster, layout::Area, read};
use crate::{Keyspace, Result, Version};

/// Maximum number of keys that one step deletes.
const STEP: u32 = 2048;

/// Maximum attempts of a step that conflicts with transactions that wrote to the keyspace.
const ATTEMPTS: u32 = 20;

/// Deletes all keys of a keyspace. Returns the version from which on it is empty; `None` if it had no keys.
pub(super) async fn drop_keyspace(cluster: Arc<Cluster>, keyspace: Keyspace) -> Result<Option<Version>> {
    let mut last = None;
    for area in [Area::Entries, Area::Chunks] {
        let (first, end) = cluster.layout.all(area, keyspace);
        let (mut start, mut conflicts, mut found_nothing) = (first.clone(), 0, true);
        loop {
            match step(&cluster, (start.clone(), end.clone())).await {
                Ok(Some((version, deleted))) => {
                    (last, conflicts, found_nothing) = (Some(version), 0, false);
                    start = after(deleted);
                }
                // Another pass deletes keys that were written behind this one, until a pass finds none.
                Ok(None) if !found_nothing => (start, found_nothing) = (first.clone(), true),
                Ok(None) => break,
                Err(error) if error.is_retryable() && conflicts < ATTEMPTS => conflicts += 1,
                Err(error) => return Err(error),
            }
        }
    }
    Ok(last)
}

/// Deletes up to [`STEP`] first keys of a range. Returns the version of the commit, and the last deleted key; `None` if the range is empty.
async fn step(cluster: &Arc<Cluster>, range: (Vec<u8>, Vec<u8>)) -> Result<Option<(Version, Vec<u8>)>> {
    let now = cluster.now().await?;
    let (mut keys, mut rest) = (Vec::new(), Some(read::Unread::all(range)));
    while keys.is_empty()
        && let Some(unread) = rest
    {
        let read = read::keys(Arc::clone(cluster), now, unread, STEP).await?;
        cluster.count(1, read.requests);
        (keys, rest) = (read.keys, read.rest);
    }
    let Some(last) = keys.last().cloned() else { return Ok(None) };
    let mut transaction = cluster.begin(std::time::Duration::ZERO).await?;
    let deletes = keys.into_iter().map(|key| Mutation::Delete(key.into())).collect();
    match cluster.commit(&mut transaction, deletes, Vec::new()).await {
        Ok(at) => Ok(Some((Version(at.unwrap_or(now)), last))),
        Err(failed) => Err(failed.error),
    }
}
