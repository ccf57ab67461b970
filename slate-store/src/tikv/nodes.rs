//! Connections with nodes, and which nodes get no requests of single regions for some seconds.

use std::{collections::BTreeMap, sync::Mutex, time::Instant};

use tokio::time::timeout;
use tonic::transport::Channel;

use super::{
    proto,
    regions::{BACKOFF, Leader, PATIENCE, Region, Regions, call, connect, lock},
};

/// The state of the nodes, by their numbers.
#[derive(Default)]
pub(super) struct Nodes {
    channels: Mutex<BTreeMap<u64, Channel>>,
    /// The nodes that were late or busy, and the time until which no request is sent to each. A node stays here until it answers after that
    /// time.
    backing_off: Mutex<BTreeMap<u64, Instant>>,
}

impl Regions {
    /// Returns a connection with the node that leads a region; `None` if it cannot be made in time.
    pub(super) async fn node(&self, region: &Region) -> Option<Channel> {
        let store = region.leader.store;
        if let Some(channel) = lock(&self.nodes.channels).get(&store) {
            return Some(channel.clone());
        }
        let Some(address) = self.of_leader(|leader| request_address(leader, store)).await? else {
            self.forget(region);
            return None;
        };
        match timeout(PATIENCE, connect(&self.security, &address)).await {
            Ok(Some(channel)) => {
                lock(&self.nodes.channels).insert(store, channel.clone());
                Some(channel)
            }
            Ok(None) => {
                self.lost(region);
                None
            }
            Err(_) => {
                self.late(region);
                None
            }
        }
    }

    /// Forgets a region and the connection with its leader, after a request that failed.
    pub(super) fn lost(&self, region: &Region) {
        lock(&self.nodes.channels).remove(&region.leader.store);
        self.forget(region);
    }

    /// Forgets a region, and sends no request to its leader for some seconds, after one that was not answered in time. The connection stays open,
    /// unless the node has not answered since an earlier back-off: it may be at another address.
    pub(super) fn late(&self, region: &Region) {
        let earlier = self.back_off(region);
        if earlier.is_some_and(|until| until <= Instant::now()) {
            lock(&self.nodes.channels).remove(&region.leader.store);
        }
        self.forget(region);
    }

    /// Sends no request to the leader of a region for some seconds. Returns until when none was to be sent to it before, unless it has answered
    /// since then.
    pub(super) fn back_off(&self, region: &Region) -> Option<Instant> {
        lock(&self.nodes.backing_off).insert(region.leader.store, Instant::now() + BACKOFF)
    }

    /// Forgets a back-off of the leader of a region that has passed, after an answer.
    pub(super) fn answered(&self, region: &Region) {
        let mut backing_off = lock(&self.nodes.backing_off);
        if backing_off.get(&region.leader.store).is_some_and(|until| *until <= Instant::now()) {
            backing_off.remove(&region.leader.store);
        }
    }

    /// Whether no request is to be sent to the leader of a region, because it was late or busy.
    pub(super) fn is_backing_off(&self, region: &Region) -> bool {
        lock(&self.nodes.backing_off).get(&region.leader.store).is_some_and(|until| Instant::now() < *until)
    }
}

/// Returns the address of a node; `Some(None)` if it does not exist any more.
async fn request_address(Leader { channel, cluster }: Leader, store: u64) -> Option<Option<String>> {
    let request = proto::GetStore { header: Some(proto::Header { cluster }), store };
    let answer: proto::StoreAnswer = call(channel, "/pdpb.PD/GetStore", request).await.ok()?;
    Some(answer.store.map(|store| store.address))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tikv::regions::tests::{channel, region, regions, wait};

    impl Regions {
        /// Makes the process at a port the leader of a region.
        pub(in crate::tikv) fn connected(&self, region: &Region, port: u16) {
            lock(&self.nodes.channels).insert(region.leader.store, channel(port));
        }

        pub(in crate::tikv) fn is_connected(&self, region: &Region) -> bool {
            lock(&self.nodes.channels).contains_key(&region.leader.store)
        }
    }

    #[test]
    fn a_node_that_is_late_backs_off() {
        let (regions, late) = (regions(&[1]), region(b"b", None));
        regions.cache(late.clone());
        assert!(!regions.is_backing_off(&late));
        regions.late(&late);
        assert!(regions.is_backing_off(&late) && regions.cached(b"b").is_none());
        let other = Region { leader: proto::Peer { store: 7, ..late.leader }, ..late };
        assert!(!regions.is_backing_off(&other));
    }

    #[test]
    fn a_node_that_is_late_again_after_its_back_off_is_connected_anew() {
        let (regions, late) = (regions(&[1]), region(b"b", None));
        let end_back_off = || lock(&regions.nodes.backing_off).insert(late.leader.store, Instant::now());
        wait(async {
            regions.connected(&late, 1);
            let is_connected = || regions.is_connected(&late);
            regions.late(&late);
            regions.late(&late);
            assert!(is_connected(), "requests that were sent side by side are late together");
            end_back_off();
            regions.answered(&late);
            regions.late(&late);
            assert!(is_connected(), "it has answered in between");
            end_back_off();
            regions.late(&late);
            assert!(!is_connected());
            assert!(regions.is_backing_off(&late));
        });
    }
}
