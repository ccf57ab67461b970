use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{RedbSnapshot, open::Opened};
use crate::Result;

/// A snapshot of the last commit, with the tables that were opened in it: to open both anew for each read takes several
/// times as long as to read a key.
#[derive(Default)]
pub(super) struct Latest(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    snapshot: Option<RedbSnapshot>,
    /// How often it was forgotten: a snapshot that was opened before may not be kept after.
    forgotten: u64,
}

impl Latest {
    /// A snapshot of the last commit.
    pub(super) fn snapshot(&self, opened: &Arc<Opened>) -> Result<RedbSnapshot> {
        let forgotten = {
            let kept = self.lock();
            if let Some(snapshot) = &kept.snapshot {
                return Ok(snapshot.clone());
            }
            kept.forgotten
        };
        let snapshot = RedbSnapshot::open(opened)?;
        let mut kept = self.lock();
        if kept.forgotten == forgotten {
            kept.snapshot = Some(snapshot.clone());
        }
        Ok(snapshot)
    }

    /// Gives it up: it is no longer the last, or is in a writer's way.
    pub(super) fn forget(&self) {
        let mut kept = self.lock();
        kept.forgotten += 1;
        let snapshot = kept.snapshot.take();
        // To close it is no reason for others to wait.
        drop(kept);
        drop(snapshot);
    }

    /// Neither of its changes can be broken off.
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
