use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{RedbSnapshot, open::OpenedFile, snapshot::Inner};
use crate::{Result, superseded::Superseded};

/// A shared snapshot of the last commit and its open tables, because opening them for each read costs more than
/// reading a key.
#[derive(Default)]
pub(super) struct Latest {
    kept: Mutex<Option<RedbSnapshot>>,
    /// Snapshots of earlier commits that are still open.
    pub(super) superseded: Superseded<Inner>,
}

impl Latest {
    /// Returns a snapshot of the last commit; `None` while redb may show a commit that will be undone.
    pub(super) fn snapshot(&self, opened: &Arc<OpenedFile>) -> Result<Option<RedbSnapshot>> {
        if let Some(kept) = &*self.lock() {
            return Ok(Some(kept.clone()));
        }
        // Locks in this order because a compaction, too, locks the handle first.
        let handle = opened.handle();
        let mut kept = self.lock();
        if let Some(kept) = &*kept {
            return Ok(Some(kept.clone()));
        }
        let Some(stable) = opened.storage.stable() else { return Ok(None) };
        // Opens the snapshot under the lock. Otherwise concurrent calls could store an older snapshot last, and a
        // reader that has seen a commit could then get the one before it.
        let snapshot = RedbSnapshot::of(&handle, opened)?;
        if opened.storage.stable() != Some(stable) {
            return Ok(None);
        }
        *kept = Some(snapshot.clone());
        Ok(Some(snapshot))
    }

    /// Drops the shared snapshot, because it is no longer the last commit or blocks a writer.
    pub(super) fn forget(&self) {
        let kept = self.lock().take();
        // Outside the lock, because dropping a snapshot takes time.
        if let Some(kept) = kept {
            kept.supersede(&self.superseded);
        }
    }

    /// Locks the state. A poisoned lock is sound: no code under it can panic between two dependent updates.
    fn lock(&self) -> MutexGuard<'_, Option<RedbSnapshot>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
