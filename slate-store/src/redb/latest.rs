use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{RedbSnapshot, open::Opened};
use crate::Result;

/// A snapshot of the last commit, with the tables that were opened in it: to open both anew for each read takes several
/// times as long as to read a key.
#[derive(Default)]
pub(super) struct Latest(Mutex<Option<RedbSnapshot>>);

impl Latest {
    /// A snapshot of the last commit.
    pub(super) fn snapshot(&self, opened: &Arc<Opened>) -> Result<RedbSnapshot> {
        if let Some(kept) = &*self.lock() {
            return Ok(kept.clone());
        }
        // In this order: a compaction, too, has the handle before it comes here.
        let handle = opened.handle();
        let mut kept = self.lock();
        if let Some(kept) = &*kept {
            return Ok(kept.clone());
        }
        // Opened under the lock: of two snapshots the one that is kept would otherwise be whichever came last, and who had
        // seen a commit that is being made might be handed the one before it.
        let snapshot = RedbSnapshot::of(&handle, opened)?;
        *kept = Some(snapshot.clone());
        Ok(snapshot)
    }

    /// Gives it up: it is no longer the last, or is in a writer's way.
    pub(super) fn forget(&self) {
        let kept = self.lock().take();
        // To close it is no reason for others to wait.
        drop(kept);
    }

    /// Neither of its changes can be broken off.
    fn lock(&self) -> MutexGuard<'_, Option<RedbSnapshot>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
