//! Orders commits and detects conflicts: of several conflicting transactions the first committer wins.
//!
//! Commits are checked and written one at a time, so RocksDB's sequence number after the write is the commit's version,
//! and a snapshot of sequence number `s` shows exactly the commits up to `s`. While transactions are open, the keys of
//! each commit are recorded: a transaction is checked against the commits after the version that it reads.
//!
//! Keys are recorded as hashes of eight bytes. Two keys with the same hash can cause an unnecessary conflict, but no
//! missed one.

use std::{
    collections::{BTreeMap, HashMap, VecDeque, btree_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{Error, Keyspace, Result, Version};

/// The most keys that are recorded; at eight bytes each, 32 MiB. The oldest commits are discarded first.
const MAX_REMEMBERED: usize = 4 << 20;

/// The memory of a recorded commit without its keys, in units of one key.
const COMMIT_OVERHEAD: usize = 10;

#[derive(Default)]
pub(super) struct Commits(Mutex<State>);

/// The keys of a transaction, hashed.
#[derive(Default)]
pub(super) struct Keys {
    /// Written, or guarded exclusively.
    pub(super) written: Vec<u64>,
    pub(super) shared: Vec<u64>,
    /// Guarded exclusively. Also contained in `written`.
    pub(super) exclusive: Vec<u64>,
    /// The keyspaces of all written and guarded keys.
    pub(super) keyspaces: Vec<Keyspace>,
}

struct Commit {
    version: Version,
    written: Vec<u64>,
    shared: Vec<u64>,
}

#[derive(Default)]
struct State {
    /// The last commits in their order, from the first one that some open transaction does not see.
    recent: VecDeque<Commit>,
    /// The total cost of `recent`, in units of one key.
    remembered: usize,
    /// The last commit that was forgotten because of [`MAX_REMEMBERED`].
    forgotten: Version,
    /// How many open transactions read each version.
    open: BTreeMap<Version, usize>,
    /// The commits that dropped keyspaces while transactions were open.
    dropped: HashMap<Keyspace, Version>,
}

impl Commits {
    /// Begins a transaction over the snapshot that `open` takes, together with its version.
    pub(super) fn begin<S>(commits: &Arc<Self>, open: impl FnOnce() -> (S, Version)) -> (S, Began) {
        // No commit comes between the snapshot and the entry.
        let mut state = commits.lock();
        let (snapshot, version) = open();
        *state.open.entry(version).or_default() += 1;
        drop(state);
        (snapshot, Began { commits: Arc::clone(commits), version })
    }

    /// Drops a keyspace with `erase`, which returns the version of the drop.
    pub(super) fn drop_keyspace(&self, keyspace: Keyspace, erase: impl FnOnce() -> Result<Version>) -> Result<Version> {
        let mut state = self.lock();
        let version = erase()?;
        if !state.open.is_empty() {
            state.dropped.insert(keyspace, version);
        }
        Ok(version)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing under this lock panics halfway through a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn check(&self, version: Version, keys: &Keys) -> Result<(), CommitError> {
        if version < self.forgotten {
            return conflict("it was open for so long that the record of concurrent commits was discarded");
        }
        let was_dropped = |keyspace| self.dropped.get(keyspace).is_some_and(|dropped| *dropped > version);
        if keys.keyspaces.iter().any(was_dropped) {
            return conflict("a keyspace that it wrote to or guarded was dropped");
        }
        let unseen = || self.recent.iter().rev().take_while(|commit| commit.version > version);
        let written = || unseen().flat_map(|commit| &commit.written);
        let shared = unseen().flat_map(|commit| &commit.shared);
        let same = intersection(&keys.written, written())
            .or_else(|| intersection(&keys.shared, written()))
            .or_else(|| intersection(&keys.exclusive, shared));
        same.map_or(Ok(()), |key| Err(CommitError::SameKey(key)))
    }

    fn remember(&mut self, version: Version, keys: Keys) {
        let commit = Commit { version, written: keys.written, shared: keys.shared };
        self.remembered += commit.cost();
        self.recent.push_back(commit);
        while self.remembered > MAX_REMEMBERED
            && let Some(version) = self.forget_first()
        {
            self.forgotten = version;
        }
    }

    /// Discards the commits that every open transaction sees.
    fn forget(&mut self) {
        let Some(oldest) = self.open.keys().next().copied() else {
            *self = Self::default();
            return;
        };
        while self.recent.front().is_some_and(|commit| commit.version <= oldest) {
            self.forget_first();
        }
        self.dropped.retain(|_, version| *version > oldest);
    }

    fn forget_first(&mut self) -> Option<Version> {
        let commit = self.recent.pop_front()?;
        self.remembered = self.remembered.saturating_sub(commit.cost());
        Some(commit.version)
    }

    fn close(&mut self, version: Version) {
        if let Entry::Occupied(mut open) = self.open.entry(version) {
            *open.get_mut() -= 1;
            if *open.get() == 0 {
                open.remove();
            }
        }
        self.forget();
    }
}

impl Commit {
    fn cost(&self) -> usize {
        self.written.len() + self.shared.len() + COMMIT_OVERHEAD
    }
}

/// Returns a key that `mine` and `theirs` share. Sorts the shorter of the two.
fn intersection<'a>(mine: &[u64], theirs: impl Iterator<Item = &'a u64>) -> Option<u64> {
    if mine.is_empty() {
        return None;
    }
    let mut theirs: Vec<u64> = theirs.copied().collect();
    if theirs.is_empty() {
        return None;
    }
    let mut sorted;
    let (few, many) = if mine.len() < theirs.len() {
        sorted = mine.to_vec();
        (&mut sorted, theirs.as_slice())
    } else {
        (&mut theirs, mine)
    };
    few.sort_unstable();
    many.iter().find(|key| few.binary_search(key).is_ok()).copied()
}

/// An open transaction.
pub(super) struct Began {
    commits: Arc<Commits>,
    version: Version,
}

impl Began {
    /// Returns the version that the transaction reads.
    pub(super) fn version(&self) -> Version {
        self.version
    }

    /// Commits by `write`, unless another commit conflicts with `keys`. `write` returns the version of the commit.
    pub(super) fn commit(self, keys: Keys, write: impl FnOnce() -> Result<Version>) -> Result<Version, CommitError> {
        let mut state = self.commits.lock();
        state.check(self.version, &keys)?;
        let version = write().map_err(CommitError::Store)?;
        // The count includes this transaction.
        if state.open.len() > 1 || state.open.values().next().is_some_and(|open| *open > 1) {
            state.remember(version, keys);
        }
        drop(state);
        Ok(version)
    }

    /// Checks the guards of a transaction that writes nothing.
    pub(super) fn check(self, keys: &Keys) -> Result<Version, CommitError> {
        self.commits.lock().check(self.version, keys).map(|()| self.version)
    }
}

impl Drop for Began {
    fn drop(&mut self) {
        self.commits.lock().close(self.version);
    }
}

fn conflict<T>(detail: &'static str) -> Result<T, CommitError> {
    Err(CommitError::Conflict(detail))
}

/// Why a commit failed.
#[derive(Debug)]
pub(super) enum CommitError {
    /// A conflict without a key.
    Conflict(&'static str),
    /// Another transaction first committed a change to a key with this hash.
    SameKey(u64),
    /// The write failed.
    Store(Error),
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    const A: Keyspace = Keyspace(1);

    /// A database that only counts its commits.
    #[derive(Default)]
    struct Database {
        commits: Arc<Commits>,
        last: AtomicU64,
    }

    impl Database {
        fn begin(&self) -> Began {
            Commits::begin(&self.commits, || ((), Version(self.last.load(Ordering::SeqCst)))).1
        }

        fn next(&self) -> Version {
            Version(self.last.fetch_add(1, Ordering::SeqCst) + 1)
        }

        fn commit(&self, began: Began, keys: Keys) -> Result<(), CommitError> {
            began.commit(keys, || Ok(self.next())).map(drop)
        }
    }

    fn writes(keys: impl IntoIterator<Item = u64>) -> Keys {
        Keys { written: keys.into_iter().collect(), keyspaces: vec![A], ..Keys::default() }
    }

    fn shares(shared: u64, written: u64) -> Keys {
        Keys { shared: vec![shared], ..writes([written]) }
    }

    fn excludes(key: u64) -> Keys {
        Keys { exclusive: vec![key], ..writes([key]) }
    }

    #[test]
    fn the_first_committer_of_two_writers_of_a_key_wins() {
        let db = Database::default();
        let (first, second, apart) = (db.begin(), db.begin(), db.begin());
        db.commit(first, writes([1, 2])).unwrap();
        assert!(matches!(db.commit(second, writes([2, 3])), Err(CommitError::SameKey(2))));
        db.commit(apart, writes([3])).unwrap();
        db.commit(db.begin(), writes([2, 3])).unwrap();
    }

    #[test]
    fn a_shared_guard_conflicts_with_writes_and_exclusive_guards_and_not_with_shared_ones() {
        let db = Database::default();
        let open: [Began; 5] = std::array::from_fn(|_| db.begin());
        let [first, second, third, fourth, fifth] = open;
        db.commit(first, shares(1, 10)).unwrap();
        db.commit(second, shares(1, 11)).unwrap();
        assert!(db.commit(third, excludes(1)).is_err(), "another transaction committed a shared guard of the key");
        db.commit(fourth, excludes(2)).unwrap();
        assert!(db.commit(fifth, shares(2, 12)).is_err());
        let (guards_only, writer) = (db.begin(), db.begin());
        db.commit(writer, writes([5])).unwrap();
        assert!(guards_only.check(&Keys { shared: vec![5], ..Keys::default() }).is_err());
    }

    #[test]
    fn a_drop_conflicts_with_open_transactions_that_used_the_keyspace() {
        let db = Database::default();
        let (before, elsewhere) = (db.begin(), db.begin());
        db.commits.drop_keyspace(A, || Ok(db.next())).unwrap();
        let after = db.begin();
        assert!(matches!(db.commit(before, writes([1])), Err(CommitError::Conflict(_))));
        db.commit(elsewhere, Keys { keyspaces: vec![Keyspace(2)], ..writes([2]) }).unwrap();
        db.commit(after, writes([1])).unwrap();
        assert!(db.commits.lock().dropped.is_empty());
    }

    #[test]
    fn commits_are_forgotten_when_every_open_transaction_sees_them() {
        let db = Database::default();
        let old = db.begin();
        (0..10).for_each(|key| db.commit(db.begin(), shares(key, key)).unwrap());
        assert_eq!(db.commits.lock().recent.len(), 10);
        drop(old);
        let state = db.commits.lock();
        assert_eq!((state.recent.len(), state.remembered, state.open.len()), (0, 0, 0));
    }

    #[test]
    fn a_transaction_from_before_the_remembered_commits_conflicts() {
        let db = Database::default();
        let old = db.begin();
        let half = u64::try_from(MAX_REMEMBERED / 2).unwrap();
        (0..3).for_each(|round| db.commit(db.begin(), writes(round..round + half)).unwrap());
        assert!(db.commits.lock().remembered <= MAX_REMEMBERED);
        let conflict = db.commit(old, writes([u64::MAX])).unwrap_err();
        assert!(matches!(conflict, CommitError::Conflict(detail) if detail.contains("discarded")));
        db.commit(db.begin(), writes([u64::MAX])).unwrap();
    }
}
