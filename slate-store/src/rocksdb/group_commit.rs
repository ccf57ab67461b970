//! Group commit: syncs the log to the device once for many commits.
//!
//! RocksDB syncs its log once for each caller, one after the other, even if the first sync has included everything.
//! Here a caller that arrives during a sync waits for its end; then one of the waiting callers syncs for all of them.
//!
//! After a failed sync no further sync is made. The operating system may have discarded the data that it could not
//! write, so a later successful sync would not show that they were written. No commit is acknowledged until the database is reopened.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::{Context, Error, Result, Version};

#[derive(Default)]
pub(super) struct GroupCommit {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    /// The last commit since opening.
    committed: Version,
    /// The last commit that is known to be on the device.
    durable: Version,
    sync: Sync,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Sync {
    #[default]
    Idle,
    Running,
    Failed,
}

impl GroupCommit {
    /// Records the last commit.
    pub(super) fn set_committed(&self, commit: Version) {
        self.lock().committed = commit;
    }

    /// Returns the last commit since opening.
    pub(super) fn last(&self) -> Version {
        self.lock().committed
    }

    /// Fails after an earlier failure.
    pub(super) fn check(&self) -> Result<()> {
        match self.lock().sync {
            Sync::Failed => {
                let detail = "the device failed earlier; the database rejects writes until it is reopened";
                Err(Error::Io(Box::new(Context::new(detail))))
            }
            Sync::Idle | Sync::Running => Ok(()),
        }
    }

    /// Records that RocksDB failed to write to its log.
    pub(super) fn failed(&self) {
        self.lock().sync = Sync::Failed;
        self.ended.notify_all();
    }

    /// Returns when this commit is on the device. `sync` syncs every commit to the device.
    pub(super) fn wait(&self, commit: Version, sync: impl FnOnce() -> Result<()>) -> Result<()> {
        let mut state = self.lock();
        loop {
            if state.durable >= commit {
                return Ok(());
            }
            match state.sync {
                Sync::Idle => break,
                Sync::Running => state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner),
                Sync::Failed => {
                    let detail = "the sync that was to include this commit failed; reopen the database to see which commits it has";
                    return Err(Error::OutcomeUnknown(Box::new(Context::new(detail))));
                }
            }
        }
        state.sync = Sync::Running;
        let reaches = state.committed;
        drop(state);
        let synced = sync();
        let mut state = self.lock();
        // Another caller's write may have failed in the meantime.
        if synced.is_err() {
            state.sync = Sync::Failed;
        } else {
            state.durable = state.durable.max(reaches);
            if state.sync == Sync::Running {
                state.sync = Sync::Idle;
            }
        }
        drop(state);
        self.ended.notify_all();
        synced
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code under this lock can panic between two dependent updates.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Barrier,
            atomic::{AtomicUsize, Ordering},
        },
        thread,
        time::Duration,
    };

    use super::*;

    fn next(log: &GroupCommit) -> Version {
        let mut state = log.lock();
        state.committed.0 += 1;
        state.committed
    }

    #[test]
    fn concurrent_commits_share_syncs() {
        const THREADS: usize = 8;
        let (log, syncs, start) = (GroupCommit::default(), AtomicUsize::new(0), Barrier::new(THREADS));
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    start.wait();
                    for _ in 0..10 {
                        let commit = next(&log);
                        let sync = || {
                            syncs.fetch_add(1, Ordering::Relaxed);
                            thread::sleep(Duration::from_millis(2));
                            Ok(())
                        };
                        log.wait(commit, sync).unwrap();
                        assert!(log.lock().durable >= commit);
                    }
                });
            }
        });
        let syncs = syncs.load(Ordering::Relaxed);
        assert!((10..=40).contains(&syncs), "{syncs} syncs for 80 commits");
    }

    #[test]
    fn a_durable_commit_needs_no_sync() {
        let log = GroupCommit::default();
        log.wait(log.last(), || panic!("nothing was committed")).unwrap();
        let (first, second) = (next(&log), next(&log));
        log.wait(second, || Ok(())).unwrap();
        log.wait(first, || panic!("the sync included it")).unwrap();
    }

    #[test]
    fn after_a_failed_sync_nothing_is_acknowledged() {
        let log = GroupCommit::default();
        let commit = next(&log);
        let failing = || {
            thread::sleep(Duration::from_millis(30));
            Err(Error::OutcomeUnknown(Box::default()))
        };
        thread::scope(|scope| {
            let first = scope.spawn(|| log.wait(commit, failing));
            while log.lock().sync != Sync::Running {
                thread::yield_now();
            }
            let late = next(&log);
            assert!(matches!(log.wait(late, || panic!("no second sync")), Err(Error::OutcomeUnknown(_))));
            assert!(matches!(first.join().unwrap(), Err(Error::OutcomeUnknown(_))));
        });
        assert!(matches!(log.check(), Err(Error::Io(_))));
        assert!(log.wait(Version(0), || panic!("no sync")).is_ok(), "an acknowledged commit stays acknowledged");
    }
}
