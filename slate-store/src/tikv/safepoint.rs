//! Garbage collection: removes versions that no reader may request any more.
//!
//! ```text
//! ───────────── safepoint ─────────────── now
//!   removed        │      readable
//! ```
//!
//! Services that read old versions for long, such as TiKV's backup, register a safepoint of their own with the placement driver. It returns the
//! lowest of all before anything is removed ([`lowest`]).
//!
//! Only Slate moves the safepoint, unless TiDB uses the cluster too. [`collect`] first stores the new safepoint under a key that all databases of
//! the cluster check, and then passes it to the cluster. A snapshot that is older than the option `unchecked_age` (a minute by default) checks it
//! *after* each read: if the safepoint has not passed the snapshot, collection had not begun at the time of the read, which is therefore complete.
//! A commit checks it *before* it writes, and collection waits for commits that were still allowed:
//!
//! ```text
//! commit       looks for the safepoint ── its requests, at most longest_commit ──▶
//! collection        stores the safepoint ───────────── grace ─────────────────────▶ removes
//! ```

use std::{sync::Arc, time::Duration};

use tikv_client::{Error as ClientError, Timestamp, TimestampExt, transaction::Mutation};
use tokio::time::timeout;

use super::{
    cluster::{Cluster, persist},
    error,
    layout::Layout,
    proto, read,
    regions::{Leader, Regions, call},
    value::{self, Stored},
};
use crate::{Context, Error, Result, Version};

/// Number of low bits of a timestamp that count within a millisecond.
const LOGICAL_BITS: u32 = 18;

/// Timeout of a collection by the cluster, which searches all regions for locks.
const PATIENCE: Duration = Duration::from_secs(600);

/// The name under which the placement driver knows the service that collects garbage. It includes this safepoint among those of all services, and
/// never lets it expire. TiDB uses the same name.
const COLLECTOR: &[u8] = b"gc_worker";

/// Returns the timestamp that is `age` before another one.
pub(super) fn before(at: u64, age: Duration) -> u64 {
    let millis = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
    at.saturating_sub(millis.saturating_mul(1 << LOGICAL_BITS))
}

/// Returns the stored safepoint; 0 before the first collection.
async fn stored(cluster: &Arc<Cluster>) -> Result<u64> {
    let now = cluster.now().await?;
    cluster.count_request();
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

/// Stores a safepoint, unless a later one is already stored.
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

/// Registers a service's safepoint with the placement driver for `seconds`; 0 removes it. The placement driver ignores a safepoint below the lowest
/// of all services. Returns that lowest one: nothing may be removed that a snapshot at this timestamp shows.
pub(super) async fn lowest(cluster: &Cluster, service: &[u8], seconds: i64, safepoint: u64) -> Result<u64> {
    let request = proto::UpdateServiceSafepoint { header: None, service: service.to_vec(), seconds, safepoint };
    let attempt = || {
        cluster.count_request();
        register(&cluster.regions, cluster.options.request_timeout, request.clone())
    };
    let failed = "the placement driver does not return the safepoints of backups and other services";
    persist(cluster.options.patience, attempt).await.map_err(|error| error::of_request(error, failed))
}

/// Makes one attempt to register a safepoint. Placement drivers in a back-off receive it, too, and it begins no back-off: collection requires it,
/// and the driver writes it to its disk, which may take longer than a look-up.
async fn register(
    regions: &Regions,
    limit: Duration,
    request: proto::UpdateServiceSafepoint,
) -> Result<u64, ClientError> {
    let attempt = async {
        let no_leader = || tonic::Status::unavailable("no placement driver names the leader");
        let Leader { channel, cluster } = regions.find_leader().await.ok_or_else(no_leader)?;
        let request = proto::UpdateServiceSafepoint { header: Some(proto::Header { cluster }), ..request };
        call::<_, proto::UpdateServiceSafepointAnswer>(channel, "/pdpb.PD/UpdateServiceGCSafePoint", request).await
    };
    let late = |_| tonic::Status::deadline_exceeded(format!("no answer within {limit:?}"));
    let answer = timeout(limit, attempt).await.map_err(late)??;
    match answer.header {
        Some(proto::AnswerHeader { error: None }) => Ok(answer.lowest),
        Some(proto::AnswerHeader { error: Some(error) }) => Err(ClientError::StringError(error.message)),
        None => Err(ClientError::StringError("the answer has no header".into())),
    }
}

/// Removes what only snapshots older than `keep` show and no service with a registered safepoint reads. Returns the safepoint of this collection.
/// If an earlier collection had a later safepoint, that one stays.
///
/// Collection begins `grace` after the safepoint was stored. If that is at least the [longest time of a commit](Cluster::longest_commit), no commit
/// misses a conflict because the records of the other transaction are gone: a commit with an older snapshot either finds the safepoint, or sent its
/// last request before collection began.
pub(super) async fn collect(cluster: Arc<Cluster>, keep: Duration, grace: Duration) -> Result<Version> {
    let safepoint = before(cluster.now().await?, keep);
    let safepoint = safepoint.min(lowest(&cluster, COLLECTOR, i64::MAX, safepoint).await?);
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
    use crate::tikv::regions::tests::{regions, silent, wait};

    #[test]
    fn the_age_of_a_timestamp_is_in_its_upper_bits() {
        assert_eq!(before(10_000 << LOGICAL_BITS | 7, Duration::from_secs(4)), 6_000 << LOGICAL_BITS | 7);
        assert_eq!(before(5, Duration::MAX), 0);
    }

    #[test]
    fn a_safepoint_is_registered_without_regard_to_back_offs() {
        let (silent, port) = silent();
        let request = proto::UpdateServiceSafepoint { service: COLLECTOR.to_vec(), ..Default::default() };
        wait(async {
            let regions = regions(&[port]);
            let attempt = || register(&regions, Duration::from_millis(20), request.clone());
            let failed = attempt().await.unwrap_err();
            assert!(failed.to_string().contains("no answer within 20ms"), "{failed}");
            assert_eq!(error::of_read(&failed), error::ReadFailure::Transient, "it is repeated");
            assert!(!regions.driver_is_backing_off().await, "look-ups go on");
            assert_eq!(regions.of(b"k").await, None);
            assert!(regions.driver_is_backing_off().await);
            let failed = attempt().await.unwrap_err();
            assert!(failed.to_string().contains("no answer within 20ms"), "it was not sent: {failed}");
        });
        drop(silent);
    }
}
