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

/// Leases of work in progress in this process. A thread renews them until this is dropped. The drop waits for a renewal in progress, which would
/// conflict with the last write of the work.
pub(super) struct HeldLeases {
    /// Ends the thread when it is dropped.
    end: Option<mpsc::Sender<()>>,
    /// `None` if the thread could not be started. The leases then expire.
    renewer: Option<JoinHandle<()>>,
}

impl HeldLeases {
    /// Starts to renew these leases, which this process has acquired.
    pub(super) fn renew<S: Store>(backend: Weak<Backend<S>>, works: Vec<LeasedWork>) -> Self {
        let (end, ended) = mpsc::channel();
        let renew = move || {
            while ended.recv_timeout(LEASE_RENEWED_EVERY) == Err(RecvTimeoutError::Timeout) {
                let Some(backend) = backend.upgrade() else { return };
                // After a failure the next renewal still comes before the leases expire.
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
            // If the thread has panicked, the leases expire.
            let _ = renewer.join();
        }
    }
}
