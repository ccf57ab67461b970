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
    /// Announces that the definitions of these collections are about to change. `None` without collections, if only this process writes to the
    /// database, and if the announcement fails: writers then do not make way for the change.
    pub(super) fn make(engine: Arc<dyn Engine>, collections: Vec<Box<str>>, wait: Duration) -> Option<Self> {
        if collections.is_empty() || engine.capabilities().exclusive {
            return None;
        }
        let id = random_number();
        let changes: Vec<Announced> = collections.into_iter().map(|collection| Announced { collection, id }).collect();
        engine.announce(&changes, wait).ok()?;
        Some(Self { engine, changes, id, wait })
    }

    /// Announces the change again, because an announcement of another process may have replaced it. The id is new: writers make way for each id for a
    /// limited time only.
    pub(super) fn repeat(&mut self) {
        self.id = random_number();
        self.changes.iter_mut().for_each(|change| change.id = self.id);
        // If this fails, writers do not make way for the change.
        let _ = self.engine.announce(&self.changes, self.wait);
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        // If this fails, the next commit of a writer that has waited for the longest time withdraws the announcement.
        let _ = self.engine.withdraw(&self.changes, self.wait);
    }
}
