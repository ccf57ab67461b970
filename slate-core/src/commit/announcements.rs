//! Announced changes of definitions, for which the writers of the collection wait.
//!
//! ```text
//! a change of a definition                        writers of the collection, in all processes
//! ────────────────────────                        ───────────────────────────────────────────
//! conflicts with a writer's commit
//! announces itself in the catalog                 read the announcement beside the catalog's version
//! is repeated without conflicts                   wait, at most HOLD, and restart
//! withdraws the announcement                      continue
//! ```
//!
//! On a store that several processes write to, a change conflicts with every writer that commits while it is made. Without the
//! announcement it would never succeed beside many writers. If the process that has announced a change ends, writers wait once, and the
//! next commit of one of them withdraws the announcement.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// The change of one collection's definition that was announced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Announced {
    pub(crate) collection: Box<str>,
    /// Different for each announcement.
    pub(crate) id: u64,
}

/// How long the transactions of a process wait for one announced change. A change takes some round trips; the build of an index of a
/// small collection also reads its documents.
pub(crate) const HOLD: Duration = Duration::from_secs(2);

/// The pause before a transaction that waits for an announced change is repeated.
pub(crate) const PAUSE: Duration = Duration::from_millis(10);

/// Beyond this number of announcements, those first seen longer ago than [`REMEMBERED_FOR`] are forgotten. Writers wait again for a forgotten
/// one.
const REMEMBERED: usize = 128;
const REMEMBERED_FOR: Duration = Duration::from_secs(600);

/// When this process first saw each announcement. The clocks of different machines are not compared.
#[derive(Debug, Default)]
pub(crate) struct Announcements(Mutex<BTreeMap<u64, Instant>>);

impl Announcements {
    /// Returns whether a transaction has to wait for an announced change: until [`HOLD`] after this process first saw it. After that,
    /// the process that announced it has probably ended.
    pub(crate) fn is_standing(&self, id: u64) -> bool {
        let now = Instant::now();
        // No code under this lock can panic between two dependent updates.
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() > REMEMBERED {
            seen.retain(|_, first| now.duration_since(*first) < REMEMBERED_FOR);
        }
        now.duration_since(*seen.entry(id).or_insert(now)) < HOLD
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_announcement_stands_for_a_while_after_it_was_first_seen() {
        let announcements = Announcements::default();
        assert!(announcements.is_standing(7) && announcements.is_standing(8));
        let long_ago = Instant::now().checked_sub(HOLD).unwrap();
        announcements.0.lock().unwrap().insert(7, long_ago);
        assert!(!announcements.is_standing(7) && announcements.is_standing(8));
    }
}
