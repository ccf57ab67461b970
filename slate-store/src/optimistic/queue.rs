//! The order of commits, and group commit: one sync of the device for many commits.
//!
//! Commits are made one at a time, under the commit lock. How a `Sync` commit reaches the device depends on how the store
//! [flushes](crate::Flushing):
//!
//! - *During commits*: the commit is made without a sync and releases the lock. One of the waiting callers then flushes for all of them;
//!   callers that arrive meanwhile wait for the next flush.
//! - *Apart*: the commit is made with a sync, unless other `Sync` commits wait for the lock. Then it leaves the sync to one of them and
//!   releases the lock. At most as many commits in a row do so as were waiting at the first of them, so no commit waits
//!   for ever.
//!
//! The lock is not fair: a thread that releases it and takes it again at once is faster than a waiting thread, which has to be woken. Commits do
//! other work in between; a compaction in steps [gives way](Entered::give_way).
//!
//! After a failure of the device no commit is possible. The operating system may have discarded the data that it could not write, so a later
//! successful sync would not show that they were written. No commit is acknowledged until the database is reopened.
//!
//! A full device is not such a failure: the store knows whether it can write again, and returns [`Full`](Error::Full) until then. A commit with an
//! unknown outcome is one, even on a full device: it may be visible, but is not in the log of commits, so conflicts with it would not be found.

use std::{
    sync::{PoisonError, TryLockError},
    thread,
    time::{Duration, Instant},
};

use crate::{
    Context, Durability, Error, Flushing, Result, Version,
    sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
        yield_now,
    },
};

/// Interval at which [`Entered::give_way`] polls. Waking a thread takes a fraction of it.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

pub(super) struct CommitQueue {
    flushing: Flushing,
    commit: Mutex<()>,
    /// Number of `Sync` commits that wait for the lock and can sync others.
    waiting: AtomicUsize,
    /// Numbers of callers that have waited for the lock since opening, and of those that have received it.
    arrived: AtomicU64,
    admitted: AtomicU64,
    /// Whether the device has failed, so that no commit is possible.
    has_failed: AtomicBool,
    state: Mutex<QueueState>,
    ended: Condvar,
}

#[derive(Default)]
struct QueueState {
    /// The last commit since opening.
    committed: Version,
    /// The last commit that is known to be on the device.
    durable: Version,
    /// Whether a caller is flushing for all waiting ones.
    is_flushing: bool,
    /// Number of commits that wait for the sync of a later one.
    unsynced: usize,
    /// How many more commits may leave the sync to a later one; `None` until the first one does so.
    left: Option<usize>,
    /// Number of other commits that the last sync included.
    served: usize,
}

impl CommitQueue {
    pub(super) fn new(flushing: Flushing) -> Self {
        Self {
            flushing,
            commit: Mutex::default(),
            waiting: AtomicUsize::new(0),
            arrived: AtomicU64::new(0),
            admitted: AtomicU64::new(0),
            has_failed: AtomicBool::new(false),
            state: Mutex::default(),
            ended: Condvar::new(),
        }
    }

    /// Waits for the commit lock.
    pub(super) fn enter(&self, durability: Durability) -> Entered<'_> {
        if let Some(entered) = self.try_enter() {
            return entered;
        }
        let can_sync = self.flushing == Flushing::Apart && durability == Durability::Sync;
        if can_sync {
            self.waiting.fetch_add(1, Ordering::SeqCst);
        }
        self.arrived.fetch_add(1, Ordering::SeqCst);
        // The lock protects no data, so it is sound even after a panic while it was held.
        let lock = self.commit.lock().unwrap_or_else(PoisonError::into_inner);
        self.admitted.fetch_add(1, Ordering::SeqCst);
        if can_sync {
            self.waiting.fetch_sub(1, Ordering::SeqCst);
        }
        Entered { queue: self, lock: Some(lock) }
    }

    /// Takes the commit lock; `None` if another thread has it.
    pub(super) fn try_enter(&self) -> Option<Entered<'_>> {
        let lock = match self.commit.try_lock() {
            Ok(lock) => lock,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(Entered { queue: self, lock: Some(lock) })
    }

    /// Returns how many callers have waited for the lock, and how many of them have received it.
    #[cfg(test)]
    pub(super) fn waited(&self) -> [u64; 2] {
        [&self.arrived, &self.admitted].map(|count| count.load(Ordering::SeqCst))
    }

    /// Fails if the device has failed.
    pub(super) fn check(&self) -> Result<()> {
        if self.has_failed.load(Ordering::SeqCst) {
            let detail = "the device failed earlier; the database rejects writes until it is reopened";
            return Err(Error::Io(Box::new(Context::new(detail))));
        }
        Ok(())
    }

    /// Records a failed commit. After any error except `Full`, no later commit is possible.
    pub(super) fn fail(&self, error: &Error) {
        if !matches!(error, Error::Full(_)) {
            self.has_failed.store(true, Ordering::SeqCst);
        }
        drop(self.state());
        self.ended.notify_all();
    }

    /// Returns the last commit since opening.
    pub(super) fn last(&self) -> Version {
        self.state().committed
    }

    /// Waits until this commit is on the device. `flush` syncs all commits; it is called unless another caller is syncing.
    pub(super) fn wait(&self, commit: Version, flush: impl FnOnce() -> Result<()>) -> Result<()> {
        let mut state = self.state();
        loop {
            if state.durable >= commit {
                return Ok(());
            }
            if self.has_failed.load(Ordering::SeqCst) {
                let detail =
                    "the sync that was to include this commit failed; reopen the database to see which commits it has";
                return Err(Error::OutcomeUnknown(Box::new(Context::new(detail))));
            }
            // A commit that waits for the lock will sync this one, or wake the waiters when it releases the lock.
            let is_left_to_another = self.waiting.load(Ordering::SeqCst) > 0;
            if !state.is_flushing && !is_left_to_another {
                break;
            }
            state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.is_flushing = true;
        let reaches = state.committed;
        drop(state);
        let flushed = flush();
        self.flushed(reaches, &flushed);
        flushed
    }

    /// Records the result of a flush of every commit up to `reaches`.
    pub(super) fn flushed(&self, reaches: Version, flushed: &Result<()>) {
        let mut state = self.state();
        state.is_flushing = false;
        match flushed {
            // Commits made since then may wait for a later one, so they stay counted until a `Sync` commit includes them.
            Ok(()) => state.durable = state.durable.max(reaches),
            // The commits are in the log of commits, and are flushed again when the device has space.
            Err(error) if error.is_about_space() => {}
            Err(_) => self.has_failed.store(true, Ordering::SeqCst),
        }
        drop(state);
        self.ended.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        // No code under this lock can panic between two dependent updates.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueueState {
    /// Records a commit with a sync, which includes all earlier commits.
    fn set_durable(&mut self, commit: Version) {
        self.durable = self.durable.max(commit);
        (self.served, self.unsynced, self.left) = (self.unsynced, 0, None);
    }
}

/// The held commit lock.
pub(super) struct Entered<'q> {
    queue: &'q CommitQueue,
    lock: Option<MutexGuard<'q, ()>>,
}

impl Entered<'_> {
    /// Decides whether a commit is made with a sync. A `Sync` commit that is made as `Deferred` must [wait](CommitQueue::wait) after the lock is
    /// released.
    pub(super) fn durability(&self, requested: Durability) -> Durability {
        let queue = self.queue;
        if requested == Durability::Deferred || queue.flushing == Flushing::DuringCommits {
            return Durability::Deferred;
        }
        let waiting = || queue.waiting.load(Ordering::SeqCst);
        if waiting() == 0 && queue.state().served > 0 {
            // The callers whose commits the last sync included are usually about to commit again. Yielding the processor gives them
            // time to enter the queue, which saves syncs; without such callers it costs almost nothing.
            yield_now();
        }
        let waiting = waiting();
        let mut state = queue.state();
        let left = state.left.get_or_insert(waiting);
        if waiting == 0 || *left == 0 {
            return Durability::Sync;
        }
        *left -= 1;
        state.unsynced += 1;
        Durability::Deferred
    }

    /// Releases the lock, which was held for `held`, and waits until every caller that was waiting for it has received it. If there was one, waits
    /// at least for `held`, so that others have the lock for as long.
    pub(super) fn give_way(self, held: Duration) {
        let queue = self.queue;
        let arrived = queue.arrived.load(Ordering::SeqCst);
        let is_awaited = queue.admitted.load(Ordering::SeqCst) < arrived;
        let begin = Instant::now();
        drop(self);
        loop {
            // Sleeps at least once, for threads that wait for other locks of the store.
            thread::sleep(POLL_INTERVAL);
            let is_over = !is_awaited || begin.elapsed() >= held;
            if is_over && queue.admitted.load(Ordering::SeqCst) >= arrived {
                return;
            }
        }
    }

    /// Records a commit that was made with this durability.
    pub(super) fn committed(&self, commit: Version, made: Durability) {
        let mut state = self.queue.state();
        state.committed = commit;
        if made == Durability::Sync {
            state.set_durable(commit);
        }
        let serves = state.served > 0;
        drop(state);
        if made == Durability::Sync && serves {
            self.queue.ended.notify_all();
        }
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        drop(self.lock.take());
        if self.queue.flushing == Flushing::Apart
            && self.queue.waiting.load(Ordering::SeqCst) == 0
            && self.queue.state().unsynced > 0
        {
            self.queue.ended.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Barrier, thread, time::Duration};

    use super::*;

    /// A device that takes a while to sync.
    struct Device {
        queue: CommitQueue,
        last: AtomicUsize,
        syncs: AtomicUsize,
    }

    impl Device {
        fn new(flushing: Flushing) -> Self {
            Self { queue: CommitQueue::new(flushing), last: AtomicUsize::new(0), syncs: AtomicUsize::new(0) }
        }

        fn sync(&self) {
            self.syncs.fetch_add(1, Ordering::Relaxed);
            thread::sleep(Duration::from_millis(2));
        }

        fn commit(&self) {
            let entered = self.queue.enter(Durability::Sync);
            let made = entered.durability(Durability::Sync);
            let version = Version(u64::try_from(self.last.fetch_add(1, Ordering::SeqCst)).unwrap() + 1);
            if made == Durability::Sync {
                self.sync();
            }
            entered.committed(version, made);
            drop(entered);
            let flush = || {
                let _lock = (self.queue.flushing == Flushing::Apart).then(|| self.queue.enter(Durability::Deferred));
                self.sync();
                Ok(())
            };
            self.queue.wait(version, flush).unwrap();
            assert!(self.queue.state().durable >= version);
        }
    }

    #[test]
    fn concurrent_commits_share_syncs() {
        const THREADS: usize = 8;
        for flushing in [Flushing::Apart, Flushing::DuringCommits] {
            let (device, start) = (Device::new(flushing), Barrier::new(THREADS));
            thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(|| {
                        start.wait();
                        (0..10).for_each(|_| device.commit());
                    });
                }
            });
            let syncs = device.syncs.into_inner();
            assert!((10..=50).contains(&syncs), "{flushing:?}: {syncs} syncs for 80 commits");
        }
    }

    #[test]
    fn a_commit_that_nobody_follows_syncs_once() {
        for flushing in [Flushing::Apart, Flushing::DuringCommits] {
            let device = Device::new(flushing);
            (0..5).for_each(|_| device.commit());
            assert_eq!(device.syncs.into_inner(), 5);
        }
    }

    #[test]
    fn a_commit_syncs_itself_if_the_one_that_follows_makes_no_commit() {
        let queue = CommitQueue::new(Flushing::Apart);
        let first = queue.enter(Durability::Sync);
        thread::scope(|scope| {
            scope.spawn(|| drop(queue.enter(Durability::Sync)));
            while queue.waiting.load(Ordering::SeqCst) == 0 {
                thread::yield_now();
            }
            let made = first.durability(Durability::Sync);
            assert_eq!(made, Durability::Deferred);
            first.committed(Version(1), made);
            drop(first);
            let mut flushes = 0;
            queue
                .wait(Version(1), || {
                    flushes += 1;
                    Ok(())
                })
                .unwrap();
            assert_eq!(flushes, 1);
        });
    }

    /// Regression test: the flush did not count the commit that was made during it, and the commit to which that one had left its sync woke no
    /// waiter when it ended without a commit.
    #[test]
    fn a_commit_made_during_a_flush_is_not_forgotten() {
        let queue = CommitQueue::new(Flushing::Apart);
        queue.enter(Durability::Deferred).committed(Version(1), Durability::Deferred);
        let during_the_flush = || {
            // A third transaction waits for the lock, and the second leaves the sync to it.
            queue.waiting.fetch_add(1, Ordering::SeqCst);
            let second = queue.try_enter().unwrap();
            let made = second.durability(Durability::Sync);
            assert_eq!(made, Durability::Deferred);
            second.committed(Version(2), made);
            Ok(())
        };
        // The first caller flushes as if the third were not waiting yet.
        queue.wait(Version(1), during_the_flush).unwrap();
        thread::scope(|scope| {
            let second = scope.spawn(|| queue.wait(Version(2), || Ok(())));
            thread::sleep(Duration::from_millis(20));
            assert!(!second.is_finished());
            let third = queue.try_enter().unwrap();
            queue.waiting.fetch_sub(1, Ordering::SeqCst);
            drop(third);
            second.join().unwrap().unwrap();
        });
    }

    #[test]
    fn nothing_is_committed_after_a_commit_that_may_be_visible() {
        let full = || Error::Full(Box::default());
        let unknown = || Error::OutcomeUnknown(Box::new(Context::default().because(full())));
        let queue = CommitQueue::new(Flushing::Apart);
        queue.fail(&full());
        queue.flushed(Version(0), &Err(unknown()));
        assert!(queue.check().is_ok(), "what was committed is in the log of commits");
        queue.fail(&unknown());
        assert!(matches!(queue.check(), Err(Error::Io(_))));
    }

    #[test]
    fn after_a_failed_flush_nothing_is_acknowledged() {
        let queue = CommitQueue::new(Flushing::DuringCommits);
        let make = |commit| queue.enter(Durability::Sync).committed(Version(commit), Durability::Deferred);
        make(1);
        let failing = || {
            thread::sleep(Duration::from_millis(30));
            Err(Error::OutcomeUnknown(Box::default()))
        };
        thread::scope(|scope| {
            let first = scope.spawn(|| queue.wait(Version(1), failing));
            while !queue.state().is_flushing {
                thread::yield_now();
            }
            make(2);
            let late = queue.wait(Version(2), || panic!("no second flush"));
            assert!(matches!(late, Err(Error::OutcomeUnknown(_))));
            assert!(matches!(first.join().unwrap(), Err(Error::OutcomeUnknown(_))));
        });
        assert!(matches!(queue.check(), Err(Error::Io(_))));
        assert!(queue.wait(Version(0), || panic!("no flush")).is_ok(), "an acknowledged commit stays acknowledged");
    }
}
