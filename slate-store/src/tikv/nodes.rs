//! Connections to nodes, and the back-off of nodes that were late or busy.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tonic::transport::Channel;

/// How long no request is sent to a placement driver or a node that did not answer in time. Meanwhile reads do without its answer, which takes
/// longer than an answer and less than a timeout.
pub(super) const BACKOFF: Duration = Duration::from_secs(5);

/// The state of the nodes, by their numbers.
#[derive(Default)]
pub(super) struct Nodes {
    channels: Mutex<BTreeMap<u64, Channel>>,
    /// Nodes that were late or busy, each with the end of its back-off. A node is removed when it answers after that time.
    backing_off: Mutex<BTreeMap<u64, Instant>>,
}

impl Nodes {
    /// Returns the open connection to a node; `None` if there is none.
    pub(super) fn channel(&self, node: u64) -> Option<Channel> {
        lock(&self.channels).get(&node).cloned()
    }

    pub(super) fn connected(&self, node: u64, channel: Channel) {
        lock(&self.channels).insert(node, channel);
    }

    pub(super) fn disconnect(&self, node: u64) {
        lock(&self.channels).remove(&node);
    }

    /// Begins a back-off of a node that did not answer in time. Closes the connection if the node has not answered since an earlier back-off: its
    /// address may have changed.
    pub(super) fn late(&self, node: u64) {
        let earlier = self.back_off(node);
        if earlier.is_some_and(|until| until <= Instant::now()) {
            self.disconnect(node);
        }
    }

    /// Begins a back-off of a node. Returns the end of its previous back-off; `None` if it has answered since, or had none.
    pub(super) fn back_off(&self, node: u64) -> Option<Instant> {
        lock(&self.backing_off).insert(node, Instant::now() + BACKOFF)
    }

    /// Removes a node's back-off if it is over, after an answer.
    pub(super) fn answered(&self, node: u64) {
        let mut backing_off = lock(&self.backing_off);
        if backing_off.get(&node).is_some_and(|until| *until <= Instant::now()) {
            backing_off.remove(&node);
        }
    }

    /// Returns whether a node is in a back-off, because it was late or busy.
    pub(super) fn is_backing_off(&self, node: u64) -> bool {
        lock(&self.backing_off).get(&node).is_some_and(|until| Instant::now() < *until)
    }
}

/// Locks the state. A poisoned lock is sound: no code under these locks can panic between two dependent updates.
pub(super) fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tikv::regions::tests::{channel, wait};

    #[test]
    fn a_node_that_is_late_backs_off() {
        let nodes = Nodes::default();
        assert!(!nodes.is_backing_off(1));
        nodes.late(1);
        assert!(nodes.is_backing_off(1) && !nodes.is_backing_off(7));
    }

    #[test]
    fn a_node_that_is_late_again_after_its_back_off_is_connected_anew() {
        let nodes = Nodes::default();
        let end_back_off = || lock(&nodes.backing_off).insert(1, Instant::now());
        // A channel must be created within a runtime.
        wait(async {
            nodes.connected(1, channel(1));
            let is_connected = || nodes.channel(1).is_some();
            nodes.late(1);
            nodes.late(1);
            assert!(is_connected(), "requests that were sent side by side are late together");
            end_back_off();
            nodes.answered(1);
            nodes.late(1);
            assert!(is_connected(), "it has answered in between");
            end_back_off();
            nodes.late(1);
            assert!(!is_connected());
            assert!(nodes.is_backing_off(1));
        });
    }
}
