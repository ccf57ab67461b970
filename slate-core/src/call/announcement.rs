use std::{sync::Arc, time::Duration};

use super::engine::Engine;
use crate::commit::{Announced, random_number};

/// An announced change of definitions, withdrawn when this is dropped.
pub(super) struct Announcement {
    engine: Arc<dyn Engine>,
    changes: Vec<Announced>,
    id: u64,
    wait: Duration,
}

impl Announcement {
    /// Announces that the definitions of these collections are about to change. `None` if there are none, where only this process writes
    /// to the database, and if the announcement fails: the change then has to win by itself.
    pub(super) fn make(engine: Arc<dyn Engine>, collections: Vec<Box<str>>, wait: Duration) -> Option<Self> {
        if collections.is_empty() || engine.capabilities().exclusive {
            return None;
        }
        let id = random_number();
        let changes: Vec<Announced> = collections.into_iter().map(|collection| Announced { collection, id }).collect();
        engine.announce(&changes, wait).ok()?;
        Some(Self { engine, changes, id, wait })
    }

    /// Announces the change again, because that of another process may stand in its place. The id is new: others ignore one for which they
    /// have waited for a limited time.
    pub(super) fn repeat(&mut self) {
        self.id = random_number();
        self.changes.iter_mut().for_each(|change| change.id = self.id);
        // If it fails, the change has to win by itself.
        let _ = self.engine.announce(&self.changes, self.wait);
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        // If this fails, others withdraw the announcement after they have made way for its longest time.
        let _ = self.engine.withdraw(&self.changes, self.wait);
    }
}
