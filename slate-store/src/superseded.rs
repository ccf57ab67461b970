use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Instant,
};

use crate::{OldestSnapshot, Version};

/// Commits that had readers when a later commit replaced them. Opening a snapshot records nothing, so that costs reads nothing.
pub(crate) struct Superseded<T>(Mutex<SupersededState<T>>);

struct SupersededState<T> {
    /// In ascending order of versions.
    commits: Vec<Commit<T>>,
    /// The number of commits at which those without readers are removed; then set to twice the rest, so each commit costs constant time on average.
    full: usize,
}

struct Commit<T> {
    readers: Weak<T>,
    version: Version,
    since: Instant,
    /// The bytes that the store had written when the commit was replaced.
    written: u64,
}

/// Minimum number of commits at which those without readers are removed.
const FEWEST: usize = 16;

impl<T> Default for Superseded<T> {
    fn default() -> Self {
        Self(Mutex::new(SupersededState { commits: Vec::new(), full: FEWEST }))
    }
}

impl<T> Superseded<T> {
    /// Records that a commit is no longer the last one, if it has owners besides the caller. `written` is the number of bytes that the store has
    /// written so far; 0 if it does not count them.
    pub(crate) fn add(&self, commit: &Arc<T>, version: Version, written: u64) {
        if Arc::strong_count(commit) == 1 {
            return;
        }
        let mut state = self.state();
        if state.commits.len() >= state.full {
            state.commits.retain(|commit| commit.readers.strong_count() > 0);
            state.full = FEWEST.max(state.commits.len() * 2);
        }
        state.commits.push(Commit { readers: Arc::downgrade(commit), version, since: Instant::now(), written });
    }

    /// Returns the oldest commit that is still read. `held` computes the bytes that it retains, from the commit and the bytes that the store had
    /// written when it was replaced.
    pub(crate) fn oldest(&self, held: impl FnOnce(&T, u64) -> u64) -> Option<OldestSnapshot> {
        let state = self.state();
        let (readers, oldest) = state.commits.iter().find_map(|commit| Some((commit.readers.upgrade()?, commit)))?;
        let (version, age, written) = (oldest.version, oldest.since.elapsed(), oldest.written);
        // `readers` may be the last owner by now, and freeing the commit takes time.
        drop(state);
        Some(OldestSnapshot { version, age, held_bytes: Some(held(&readers, written)) })
    }

    /// Returns whether a commit is still read that was replaced before `time`.
    #[cfg(feature = "redb")]
    pub(crate) fn has_any_from_before(&self, time: Instant) -> bool {
        self.state().commits.iter().any(|commit| commit.since <= time && commit.readers.strong_count() > 0)
    }

    /// Locks the state. A poisoned lock is sound: no code under it can panic between two dependent updates.
    fn state(&self) -> MutexGuard<'_, SupersededState<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_commit_with_readers_is_found_and_others_are_forgotten() {
        let superseded = Superseded::default();
        let commits: Vec<Arc<u64>> = (0..1_000).map(Arc::new).collect();
        let mut readers: Vec<Option<Arc<u64>>> = commits.iter().map(|commit| Some(Arc::clone(commit))).collect();
        for commit in commits {
            superseded.add(&commit, Version(*commit), *commit * 10);
            // Of every hundred commits one is read for longer.
            if !commit.is_multiple_of(100) {
                readers[usize::try_from(*commit).unwrap()] = None;
            }
        }
        assert!(superseded.state().commits.len() <= 2 * FEWEST, "{}", superseded.state().commits.len());
        let oldest = |superseded: &Superseded<u64>| {
            superseded.oldest(|_, written| 20_000 - written).map(|at| (at.version.0, at.held_bytes))
        };
        assert_eq!(oldest(&superseded), Some((0, Some(20_000))));
        readers.drain(..101);
        assert_eq!(oldest(&superseded), Some((200, Some(18_000))));
        readers.clear();
        assert_eq!(oldest(&superseded), None);
        superseded.add(&Arc::new(7), Version(7), 0);
        assert_eq!(superseded.oldest(|_, _| 0), None, "a commit without readers");
    }
}
