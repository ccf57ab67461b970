//! Group commit: syncs the log to the device once for many commits.
//!
//! RocksDB syncs its log once for each caller, one after the other, even if the first sync has included everything.
//! Here a caller that arrives during a sync waits for its end; then one of the waiting callers syncs for all of them.
//!
//! After a failed sync no further sync is made. The operating system may have discarded the data that it could not
//! write, so a later successful sync would prove nothing. No commit is acknowledged until the database is reopened.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::{Context, Error, Result};

#[derive(Default)]
pub(super) struct Log {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    /// Number of the last commit since opening.
    committed: u64,
    /// Number of the last commit that is on the device.
    durable: u64,
    trip: Trip,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Trip {
    #[default]
    None,
    UnderWay,
    Failed,
}

impl Log {
    /// Records a commit and returns its number.
    pub(super) fn committed(&self) -> u64 {
        let mut state = self.lock();
        state.committed += 1;
        state.committed
    }

    /// Returns the number of the last commit.
    pub(super) fn last(&self) -> u64 {
        self.lock().committed
    }

    /// Fails after an earlier failure.
    pub(super) fn check(&self) -> Result<()> {
        match self.lock().trip {
            Trip::Failed => {
                let detail = "the device failed earlier, and nothing is written until the database is opened again";
                Err(Error::Io(Box::new(Context::new(detail))))
            }
            Trip::None | Trip::UnderWay => Ok(()),
        }
    }

    /// Records that RocksDB failed to write to its log.
    pub(super) fn failed(&self) {
        self.lock().trip = Trip::Failed;
        self.ended.notify_all();
    }

    /// Returns when this commit is on the device. `sync` writes everything that was committed to the device.
    pub(super) fn wait(&self, commit: u64, sync: impl FnOnce() -> Result<()>) -> Result<()> {
        let mut state = self.lock();
        loop {
            if state.durable >= commit {
                return Ok(());
            }
            match state.trip {
                Trip::None => break,
                Trip::UnderWay => state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner),
                Trip::Failed => {
                    let detail = "the device failed under the commits it was to be written with; open the database again to find out";
                    return Err(Error::OutcomeUnknown(Box::new(Context::new(detail))));
                }
            }
        }
        state.trip = Trip::UnderWay;
        let reaches = state.committed;
        drop(state);
        let synced = sync();
        let mut state = self.lock();
        // Another caller's write may have failed in the meantime.
        if synced.is_err() {
            state.trip = Trip::Failed;
        } else {
            state.durable = state.durable.max(reaches);
            if state.trip == Trip::UnderWay {
                state.trip = Trip::None;
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

    #[test]
    fn committers_that_meet_share_trips() {
        const THREADS: usize = 8;
        let (log, trips, start) = (Log::default(), AtomicUsize::new(0), Barrier::new(THREADS));
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    start.wait();
                    for _ in 0..10 {
                        let commit = log.committed();
                        let sync = || {
                            trips.fetch_add(1, Ordering::Relaxed);
                            thread::sleep(Duration::from_millis(2));
                            Ok(())
                        };
                        log.wait(commit, sync).unwrap();
                        assert!(log.lock().durable >= commit);
                    }
                });
            }
        });
        let trips = trips.load(Ordering::Relaxed);
        assert!((10..=40).contains(&trips), "{trips} trips for 80 commits");
    }

    #[test]
    fn what_is_on_the_device_needs_no_trip() {
        let log = Log::default();
        log.wait(log.last(), || panic!("nothing was committed")).unwrap();
        let (first, second) = (log.committed(), log.committed());
        log.wait(second, || Ok(())).unwrap();
        log.wait(first, || panic!("it went along")).unwrap();
    }

    #[test]
    fn after_a_trip_that_failed_nothing_is_acknowledged() {
        let log = Log::default();
        let commit = log.committed();
        let failing = || {
            thread::sleep(Duration::from_millis(30));
            Err(Error::OutcomeUnknown(Box::default()))
        };
        thread::scope(|scope| {
            let first = scope.spawn(|| log.wait(commit, failing));
            while log.lock().trip != Trip::UnderWay {
                thread::yield_now();
            }
            let late = log.committed();
            assert!(matches!(log.wait(late, || panic!("no second trip")), Err(Error::OutcomeUnknown(_))));
            assert!(matches!(first.join().unwrap(), Err(Error::OutcomeUnknown(_))));
        });
        assert!(matches!(log.check(), Err(Error::Io(_))));
        assert!(log.wait(0, || panic!("no trip")).is_ok(), "what was acknowledged stays so");
    }
}
