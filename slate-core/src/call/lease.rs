use std::{
    sync::{
        Weak,
        mpsc::{self, RecvTimeoutError},
    },
    thread::{self, JoinHandle},
};

use slate_store::Store;

use super::backend::Backend;
use crate::{catalog::LeasedWork, commit::LEASE_RENEWED_EVERY};

/// The leases of work that this process does now. A thread renews them until this is dropped, which waits for a renewal that is being
/// made: it would conflict with the last write of the work.
pub(super) struct HeldLeases {
    /// Ends the thread when it is dropped.
    end: Option<mpsc::Sender<()>>,
    /// `None` if it could not be started. The leases then end after their term.
    renewer: Option<JoinHandle<()>>,
}

impl HeldLeases {
    /// Renews these leases, which this process has taken.
    pub(super) fn renew<S: Store>(backend: Weak<Backend<S>>, works: Vec<LeasedWork>) -> Self {
        let (end, ended) = mpsc::channel();
        let renew = move || {
            while ended.recv_timeout(LEASE_RENEWED_EVERY) == Err(RecvTimeoutError::Timeout) {
                let Some(backend) = backend.upgrade() else { return };
                // One that fails is repeated before the term ends.
                let _ = backend.renew_leases(&works);
            }
        };
        let renewer = thread::Builder::new().name("slate-leases".into()).spawn(renew).ok();
        Self { end: Some(end), renewer }
    }
}

impl Drop for HeldLeases {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(renewer) = self.renewer.take() {
            // The renewing thread does not panic; if it did, the leases would end after their term.
            let _ = renewer.join();
        }
    }
}
