//! Reads of the latest commit in one round trip.
//!
//! A snapshot is a timestamp, which the placement driver gives in a round trip of its own. Nodes read the latest commit of a key without one
//! at the largest timestamp, 2⁶⁴ − 1, which the client's type of timestamps cannot have. So these requests do not go through
//! the client, and leave to it whatever is not a plain answer: locks, regions that moved, nodes that do not answer, values in chunks.
//!
//! Keys of one region are read in one snapshot of its node. Those of several regions are not: each is read at some time between the call and
//! its return. Callers need nothing more.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tokio::{task::JoinSet, time::timeout};

use super::{
    cluster::Cluster,
    proto,
    read::Values,
    regions::{Region, call},
    value::Stored,
};

/// The time after which the usual way is taken, for some seconds by all reads of the node. Short, because that way finds out what is wrong.
const PATIENCE: Duration = Duration::from_millis(500);

/// The timestamp that stands for the latest commit.
const LATEST: u64 = u64::MAX;

/// Reads the stored keys. Returns `None` if the nodes do not simply answer.
pub(super) async fn read(cluster: Arc<Cluster>, keys: Vec<Vec<u8>>) -> Option<Values> {
    let mut parts: BTreeMap<u64, (Region, Vec<Vec<u8>>)> = BTreeMap::new();
    for key in keys {
        let region = cluster.regions.of(&key).await.filter(|region| !cluster.regions.is_backing_off(region))?;
        parts.entry(region.id).or_insert_with(|| (region, Vec::new())).1.push(key);
    }
    cluster.count(1);
    let mut requests = JoinSet::new();
    for (region, keys) in parts.into_values() {
        requests.spawn(of_region(Arc::clone(&cluster), region, keys));
    }
    let mut values = Values::new();
    while let Some(found) = requests.join_next().await {
        values.extend(found.ok().flatten()?);
    }
    Some(values)
}

async fn of_region(cluster: Arc<Cluster>, region: Region, keys: Vec<Vec<u8>>) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    let regions = &cluster.regions;
    let requested = keys.len();
    let request = async {
        let channel = regions.node(&region).await?;
        let context = proto::Context { region: region.id, epoch: Some(region.epoch), peer: Some(region.leader) };
        let request = proto::BatchGet { context: Some(context), keys, version: LATEST };
        call::<_, proto::BatchGetAnswer>(channel, "/tikvpb.Tikv/KvBatchGet", request).await.ok()
    };
    let answer = match timeout(PATIENCE, request).await {
        Ok(Some(answer)) => answer,
        Ok(None) => {
            regions.lost(&region);
            return None;
        }
        Err(_) => {
            regions.late(&region);
            return None;
        }
    };
    if answer.region_error.is_some() {
        regions.forget(&region);
        return None;
    }
    let is_clean = answer.error.is_none() && answer.pairs.iter().all(|pair| pair.error.is_none());
    if !is_clean || answer.pairs.len() > requested {
        return None;
    }
    // A missing key is left out, or comes without a value, which no stored value is.
    let stored = answer.pairs.into_iter().filter(|pair| !pair.value.is_empty());
    Some(stored.map(|pair| (pair.key, pair.value)).collect())
}

/// Returns a value without its tag; `None` if it is in chunks.
pub(super) fn value(stored: Vec<u8>) -> Option<Vec<u8>> {
    match Stored::read(stored) {
        Ok(Stored::Inline(mut bytes)) => {
            bytes.remove(0);
            Some(bytes)
        }
        // The usual way reports the error.
        Ok(Stored::Chunks(_)) | Err(_) => None,
    }
}
