//! Reads of the latest commit in one round trip.
//!
//! A snapshot needs a timestamp, which costs a round trip to the placement driver. Nodes read the latest commit of a key without that at the
//! largest timestamp, 2⁶⁴ − 1, which the client's type of timestamps cannot represent. So these requests bypass the client. Every other answer than
//! a value is left to the client: locks, regions that moved, nodes that do not answer, values in chunks.
//!
//! Keys of one region are read in one snapshot of its node. Keys of several regions are each read at some time between the call and its return.
//! Callers rely on nothing more.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tokio::{task::JoinSet, time::timeout};

use super::{
    proto,
    read::Values,
    regions::{Region, Regions, call},
    value::Stored,
};

/// Maximum wait for a node. After it the read is repeated through the client, and all reads of this node use the client for some seconds.
const PATIENCE: Duration = Duration::from_millis(500);

/// The timestamp that stands for the latest commit.
const LATEST: u64 = u64::MAX;

/// Reads the stored keys. Returns `None` if a node does not answer with plain values; then the client must read them.
pub(super) async fn read(regions: Arc<Regions>, keys: Vec<Vec<u8>>) -> Option<Values> {
    let mut parts: BTreeMap<u64, (Region, Vec<Vec<u8>>)> = BTreeMap::new();
    for key in keys {
        let region = regions.of(&key).await.filter(|region| !regions.nodes.is_backing_off(region.leader.store))?;
        parts.entry(region.id).or_insert_with(|| (region, Vec::new())).1.push(key);
    }
    regions.count_requests(parts.len());
    let mut requests = JoinSet::new();
    for (region, keys) in parts.into_values() {
        requests.spawn(of_region(Arc::clone(&regions), region, keys));
    }
    let mut values = Values::new();
    while let Some(found) = requests.join_next().await {
        values.extend(found.ok().flatten()?);
    }
    Some(values)
}

async fn of_region(regions: Arc<Regions>, region: Region, keys: Vec<Vec<u8>>) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    let requested = keys.len();
    let channel = regions.node(&region).await?;
    let context = proto::Context { region: region.id, epoch: Some(region.epoch), peer: Some(region.leader) };
    let request = proto::BatchGet { context: Some(context), keys, version: LATEST };
    let request = call::<_, proto::BatchGetAnswer>(channel, "/tikvpb.Tikv/KvBatchGet", request);
    let answer = match timeout(PATIENCE, request).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) => {
            regions.lost(&region);
            return None;
        }
        Err(_) => {
            regions.late(&region);
            return None;
        }
    };
    regions.nodes.answered(region.leader.store);
    match answer.region_error {
        None => {}
        // A busy node is still the leader of the region.
        Some(error) if error.server_is_busy.is_some() => {
            regions.nodes.back_off(region.leader.store);
            return None;
        }
        Some(_) => {
            regions.forget(&region);
            return None;
        }
    }
    let is_clean = answer.error.is_none() && answer.pairs.iter().all(|pair| pair.error.is_none());
    if !is_clean || answer.pairs.len() > requested {
        return None;
    }
    // A missing key is left out of the answer, or has an empty value; no stored value is empty.
    let stored = answer.pairs.into_iter().filter(|pair| !pair.value.is_empty());
    Some(stored.map(|pair| (pair.key, pair.value)).collect())
}

/// Returns a value without its tag; `None` if it is in chunks or damaged.
pub(super) fn value(stored: Vec<u8>) -> Option<Vec<u8>> {
    match Stored::read(stored) {
        Ok(Stored::Inline(mut bytes)) => {
            bytes.remove(0);
            Some(bytes)
        }
        // The read through the client reports the error.
        Ok(Stored::Chunks(_)) | Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tikv::regions::tests::{channel, leads, region, regions, silent, wait};

    async fn of(regions: &Arc<Regions>) -> Option<Values> {
        read(Arc::clone(regions), vec![b"k".to_vec()]).await
    }

    #[test]
    fn a_node_that_is_late_gets_no_request_during_its_back_off() {
        let ((silent, port), regions, late) = (silent(), Arc::new(regions(&[1])), region(b"", None));
        wait(async {
            regions.cache(late.clone());
            regions.nodes.connected(1, channel(port));
            assert_eq!((of(&regions).await, regions.round_trips()), (None, 1));
            assert!(regions.nodes.is_backing_off(1) && regions.nodes.channel(1).is_some());
            regions.cache(late.clone());
            assert_eq!((of(&regions).await, regions.round_trips()), (None, 1), "a second request was sent");
        });
        drop(silent);
    }

    #[test]
    fn the_connection_with_a_node_that_is_gone_is_dropped() {
        let ((silent, port), regions, gone) = (silent(), Arc::new(regions(&[1])), region(b"", None));
        drop(silent);
        wait(async {
            regions.cache(gone.clone());
            regions.nodes.connected(1, channel(port));
            assert_eq!(of(&regions).await, None);
            assert!(
                !regions.nodes.is_backing_off(1)
                    && regions.nodes.channel(1).is_none()
                    && regions.cached(b"k").is_none()
            );
        });
    }

    #[test]
    fn a_node_does_not_back_off_for_a_placement_driver_that_is_late() {
        let ((silent, port), regions, known) = (silent(), Arc::new(regions(&[1])), region(b"", None));
        wait(async {
            regions.cache(known.clone());
            leads(&regions, port).await;
            assert_eq!(of(&regions).await, None);
            assert!(regions.driver_is_backing_off().await && !regions.nodes.is_backing_off(1));
            assert!(regions.cached(b"k").is_some());
        });
        drop(silent);
    }
}
