//! Which of the transactions that are open at one time may commit. What each commit writes is noted here, and a transaction
//! is compared with the commits that its snapshot may not have seen. The first to commit wins.
//!
//! Keys are noted by their hashes, eight bytes each: two keys of one hash cost a needless conflict, and no more.
//!
//! Commits are compared one at a time and written side by side. One that is being written counts, for who begins meanwhile,
//! as one that it has not seen.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque, btree_map::Entry},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

use crate::{Context, Error, Result};

/// How many keys are remembered at most, those of the last commits: 32 MiB. Only while transactions are open.
const REMEMBERED: usize = 4 << 20;

/// What it takes to remember a commit, besides its keys; as many keys take that.
const NOTE: usize = 10;

#[derive(Default)]
pub(super) struct Commits {
    state: Mutex<State>,
    ended: Condvar,
}

/// The keys of a transaction, hashed.
pub(super) struct Touched {
    pub(super) written: Arc<[u64]>,
    pub(super) guarded: Box<[u64]>,
}

#[derive(Default)]
struct State {
    /// The number of the last commit that was let through.
    last: u64,
    /// Those let through and not yet written.
    under_way: BTreeSet<u64>,
    /// What was let through, as far back as an open transaction may not have seen it. In their order.
    recent: VecDeque<(u64, Touched)>,
    /// How many keys those take.
    remembered: usize,
    /// The last commit that was forgotten for want of room.
    forgotten: u64,
    /// The open transactions: how many of them there are by the first commit that they may not have seen.
    open: BTreeMap<u64, usize>,
}

impl Commits {
    /// Notes that a transaction begins. Its snapshot must be taken after that: then it sees each commit that it will not be
    /// compared with.
    pub(super) fn begin(commits: &Arc<Self>) -> Began {
        let mut state = commits.lock();
        let (after, under_way) = (state.last, state.under_way.iter().copied().collect::<Vec<_>>());
        let first = under_way.first().copied().unwrap_or(after + 1);
        *state.open.entry(first).or_default() += 1;
        drop(state);
        Began { commits: Arc::clone(commits), after, under_way, first }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing under this lock panics halfway through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether one of the commits that the transaction may not have seen wrote a key that it touched.
    fn conflicts(&self, began: &Began, touched: &Touched) -> bool {
        let unseen = || self.unseen(began).flat_map(|(_, theirs)| theirs.written.iter());
        meet(&touched.written, unseen()) || meet(&touched.guarded, unseen())
    }

    /// The commits that the transaction may not have seen.
    fn unseen<'s>(&'s self, began: &'s Began) -> impl Iterator<Item = &'s (u64, Touched)> {
        let reach = self.recent.iter().rev().take_while(|(number, _)| *number >= began.first);
        reach.filter(|(number, _)| *number > began.after || began.under_way.contains(number))
    }

    /// Whether a commit that is being written relies on a key that this one writes. Were both written at once, the one that
    /// relies on the key might become visible last, when what it has read is no longer so.
    fn must_wait(&self, touched: &Touched) -> bool {
        let place = |number: &u64| self.recent.binary_search_by_key(number, |(number, _)| *number).ok();
        let under_way = self.under_way.iter().filter_map(|number| self.recent.get(place(number)?));
        meet(&touched.written, under_way.flat_map(|(_, theirs)| &theirs.guarded))
    }

    fn note(&mut self, touched: Touched) -> u64 {
        self.last += 1;
        self.remembered += touched.cost();
        self.recent.push_back((self.last, touched));
        self.under_way.insert(self.last);
        // What is being written stays: others may begin that will not see it.
        while self.remembered > REMEMBERED
            && self.recent.front().is_some_and(|(number, _)| !self.under_way.contains(number))
            && let Some(number) = self.forget_first()
        {
            self.forgotten = number;
        }
        self.last
    }

    /// Forgets what every transaction that is open, or will be, has seen.
    fn forget(&mut self) {
        let oldest = self.open.keys().next().into_iter().chain(self.under_way.first()).min().copied();
        while self.recent.front().is_some_and(|(number, _)| oldest.is_none_or(|oldest| *number < oldest)) {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) -> Option<u64> {
        let (number, touched) = self.recent.pop_front()?;
        self.remembered = self.remembered.saturating_sub(touched.cost());
        Some(number)
    }
}

impl Touched {
    fn cost(&self) -> usize {
        self.written.len() + self.guarded.len() + NOTE
    }
}

/// Whether one of `mine` is among `theirs`. Sorts the fewer of them.
fn meet<'a>(mine: &[u64], theirs: impl Iterator<Item = &'a u64>) -> bool {
    let mut theirs: Vec<u64> = theirs.copied().collect();
    if mine.is_empty() || theirs.is_empty() {
        return false;
    }
    let mut sorted;
    let (few, many) = if mine.len() < theirs.len() {
        sorted = mine.to_vec();
        (&mut sorted, theirs.as_slice())
    } else {
        (&mut theirs, mine)
    };
    few.sort_unstable();
    many.iter().any(|key| few.binary_search(key).is_ok())
}

/// Where a transaction began among the commits.
pub(super) struct Began {
    commits: Arc<Commits>,
    /// The number of the last commit.
    after: u64,
    /// Those up to that one that were being written.
    under_way: Vec<u64>,
    /// The first commit that it may not have seen.
    first: u64,
}

impl Began {
    /// Lets a transaction through to be written, unless another was first with what it touched. It is over for those who
    /// begin later when the [`Claim`] is dropped, by which time it must be visible.
    pub(super) fn claim(&self, touched: Touched) -> Result<Claim<'_>> {
        let mut state = self.commits.lock();
        loop {
            if self.first <= state.forgotten {
                return conflict("it was open for longer than the writes kept for comparison reach back");
            }
            if state.conflicts(self, &touched) {
                return conflict("another committed first what this one wrote or guarded");
            }
            if !state.must_wait(&touched) {
                break;
            }
            state = self.commits.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let number = (!touched.written.is_empty()).then(|| state.note(touched));
        Ok(Claim { commits: &self.commits, number })
    }
}

impl Drop for Began {
    fn drop(&mut self) {
        let mut state = self.commits.lock();
        if let Entry::Occupied(mut open) = state.open.entry(self.first) {
            *open.get_mut() -= 1;
            if *open.get() == 0 {
                open.remove();
            }
        }
        state.forget();
    }
}

fn conflict<T>(detail: &'static str) -> Result<T> {
    Err(Error::Conflict(Box::new(Context::new(detail))))
}

/// A commit that is being written.
pub(super) struct Claim<'c> {
    commits: &'c Commits,
    /// `None` where it only guards.
    number: Option<u64>,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let Some(number) = self.number else { return };
        let mut state = self.commits.lock();
        state.under_way.remove(&number);
        state.forget();
        drop(state);
        self.commits.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicBool, Ordering},
        thread,
        time::Duration,
    };

    use super::*;

    fn writes(keys: impl IntoIterator<Item = u64>) -> Touched {
        Touched { written: keys.into_iter().collect(), guarded: Box::default() }
    }

    fn guards(key: u64, written: u64) -> Touched {
        Touched { written: [written].into(), guarded: [key].into() }
    }

    fn commit(commits: &Arc<Commits>, touched: Touched) {
        drop(Commits::begin(commits).claim(touched).unwrap());
    }

    #[test]
    fn of_two_that_write_one_key_the_first_commits() {
        let commits = Arc::<Commits>::default();
        let (first, second, apart) = (Commits::begin(&commits), Commits::begin(&commits), Commits::begin(&commits));
        drop(first.claim(writes([1, 2])).unwrap());
        assert!(second.claim(writes([2, 3])).err().unwrap().is_retryable());
        drop(apart.claim(writes([3])).unwrap());
        commit(&commits, writes([2, 3]));
    }

    #[test]
    fn what_was_guarded_must_not_have_been_written() {
        let commits = Arc::<Commits>::default();
        let (first, second) = (Commits::begin(&commits), Commits::begin(&commits));
        drop(first.claim(guards(1, 2)).unwrap());
        assert!(second.claim(guards(2, 1)).is_err(), "each relied on what the other wrote");
        let only = |key| Touched { written: Arc::default(), guarded: [key].into() };
        let only_guards = Commits::begin(&commits);
        commit(&commits, writes([5]));
        assert!(only_guards.claim(only(5)).is_err());
        drop(only_guards.claim(only(6)).unwrap());
    }

    #[test]
    fn a_commit_that_is_being_written_was_not_seen_by_who_begins() {
        let commits = Arc::<Commits>::default();
        let (writer, other) = (Commits::begin(&commits), Commits::begin(&commits));
        let claim = writer.claim(writes([1])).unwrap();
        drop(other.claim(writes([2])).unwrap());
        let meanwhile = Commits::begin(&commits);
        drop(claim);
        drop((writer, other));
        assert!(meanwhile.claim(writes([1])).is_err());
        drop(meanwhile.claim(writes([2])).unwrap());
    }

    #[test]
    fn who_writes_what_a_commit_under_way_relies_on_waits_for_it() {
        let commits = Arc::<Commits>::default();
        let (relies, writes_it) = (Commits::begin(&commits), Commits::begin(&commits));
        let written = AtomicBool::new(false);
        let claim = relies.claim(guards(1, 2)).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                let claim = writes_it.claim(writes([1])).unwrap();
                assert!(written.load(Ordering::SeqCst));
                drop(claim);
            });
            thread::sleep(Duration::from_millis(20));
            written.store(true, Ordering::SeqCst);
            drop(claim);
        });
    }

    #[test]
    fn notes_go_with_those_they_are_for() {
        let commits = Arc::<Commits>::default();
        let old = Commits::begin(&commits);
        (0..10).for_each(|key| commit(&commits, guards(key, key)));
        assert_eq!(commits.lock().recent.len(), 10);
        drop(old);
        let state = commits.lock();
        assert_eq!((state.recent.len(), state.remembered, state.open.len(), state.under_way.len()), (0, 0, 0, 0));
    }

    #[test]
    fn beyond_what_is_remembered_who_began_before_is_told_to_run_again() {
        let commits = Arc::<Commits>::default();
        let old = Commits::begin(&commits);
        (0..3).for_each(|round| commit(&commits, writes(round..round + REMEMBERED as u64 / 2)));
        assert!(commits.lock().remembered <= REMEMBERED);
        let error = old.claim(writes([u64::MAX])).err().unwrap();
        assert!(error.is_retryable() && error.to_string().contains("longer"), "{error}");
        commit(&commits, writes([u64::MAX]));
    }

    #[test]
    fn small_commits_take_room_besides_their_keys() {
        let commits = Arc::<Commits>::default();
        let old = Commits::begin(&commits);
        (0..REMEMBERED as u64 / NOTE as u64).for_each(|key| commit(&commits, writes([key])));
        assert!(commits.lock().remembered <= REMEMBERED);
        assert!(old.claim(writes([u64::MAX])).err().unwrap().is_retryable());
    }

    #[test]
    fn a_commit_of_more_than_is_remembered_is_compared_with_all_the_same() {
        let commits = Arc::<Commits>::default();
        let (large, small) = (Commits::begin(&commits), Commits::begin(&commits));
        drop(large.claim(writes(0..REMEMBERED as u64 + 1)).unwrap());
        assert!(small.claim(writes([7])).is_err());
        drop(small.claim(writes([u64::MAX])).unwrap());
    }
}
