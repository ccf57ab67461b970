//! Garbage collection: it removes what no reader may ask for any more.
//!
//! ```text
//! ───────────── safepoint ─────────────── now
//!   removed        │      readable
//! ```
//!
//! Nothing but Slate moves the safepoint, unless TiDB uses the cluster too. [`collect`] first stores the new safepoint under a key that all
//! databases of the cluster look at, and then tells the cluster. A snapshot that is older than a minute looks for it *after* each read: if it is not passed, collection had not
//! begun when the read was made, and what was read is complete. A commit looks for it *before* it writes, and collection waits for those that
//! found nothing:
//!
//! ```text
//! commit       looks for the safepoint ── its requests, at most longest_commit ──▶
//! collection        stores the safepoint ───────────── grace ─────────────────────▶ removes
//! ```

use std::{sync::Arc, time::Duration};

use tikv_client::{Timestamp, TimestampExt, transaction::Mutation};

use super::{
    cluster::{Cluster, persist},
    error,
    layout::Layout,
    read,
    value::{self, Stored},
};
use crate::{Context, Error, Result, Version};

/// The low bits of a timestamp, which count within a millisecond.
const LOGICAL_BITS: u32 = 18;

/// How long the cluster may take to collect: it looks for locks in all regions.
const PATIENCE: Duration = Duration::from_secs(600);

/// Returns the timestamp that is `age` before another one.
fn before(at: u64, age: Duration) -> u64 {
    let millis = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
    at.saturating_sub(millis.saturating_mul(1 << LOGICAL_BITS))
}

/// Returns the stored safepoint, 0 before the first collection.
async fn stored(cluster: &Arc<Cluster>) -> Result<u64> {
    let now = cluster.now().await?;
    cluster.count(1);
    let key = Layout::safepoint();
    let values = read::many(Arc::clone(cluster), now, vec![key.clone()]).await?;
    let Some(bytes) = values.get(&key) else { return Ok(0) };
    let stored = Stored::read(bytes.clone())?;
    let number = stored.inline().and_then(|bytes| bytes.try_into().ok()).map(u64::from_be_bytes);
    number.ok_or_else(|| Error::Corrupt(Box::new("the safepoint is not readable".into())))
}

/// Fails if a snapshot at this timestamp may be incomplete.
///
/// # Errors
/// [`Expired`](Error::Expired).
pub(super) fn check(cluster: &Arc<Cluster>, at: u64) -> Result<()> {
    let own = Arc::clone(cluster);
    let safepoint = cluster.runtime.wait(async move { stored(&own).await })?;
    if at >= safepoint {
        return Ok(());
    }
    Err(Error::Expired(Box::new(Context::new("garbage collection has passed the snapshot"))))
}

/// Stores a safepoint, unless a later one is stored.
pub(super) fn publish(cluster: &Arc<Cluster>, safepoint: u64) -> impl Future<Output = Result<()>> + Send + use<> {
    let cluster = Arc::clone(cluster);
    async move {
        let mut transaction = cluster.begin(Duration::ZERO).await?;
        if stored(&cluster).await? >= safepoint {
            return Ok(());
        }
        let put = Mutation::Put(Layout::safepoint().into(), value::inline(&safepoint.to_be_bytes()));
        let committed = cluster.commit(&mut transaction, vec![put], Vec::new()).await;
        committed.map(drop).map_err(|failed| failed.error)
    }
}

/// Removes what only snapshots older than `keep` show. Returns the safepoint.
///
/// Collection begins `grace` after the safepoint was stored. With the [longest time of a commit](Cluster::longest_commit) no commit misses a
/// conflict because the traces of the other transaction are gone: one of an older snapshot either finds the safepoint, or its last request
/// was sent before collection began.
pub(super) async fn collect(cluster: Arc<Cluster>, keep: Duration, grace: Duration) -> Result<Version> {
    let safepoint = before(cluster.now().await?, keep);
    publish(&cluster, safepoint).await?;
    tokio::time::sleep(grace).await;
    let collect = || cluster.client.gc(Timestamp::from_version(safepoint));
    let collected = persist(PATIENCE, collect).await;
    collected.map_err(|failed| error::of_request(failed, "the cluster does not collect garbage"))?;
    Ok(Version(safepoint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_of_a_timestamp_is_in_its_upper_bits() {
        assert_eq!(before(10_000 << LOGICAL_BITS | 7, Duration::from_secs(4)), 6_000 << LOGICAL_BITS | 7);
        assert_eq!(before(5, Duration::MAX), 0);
    }
}
