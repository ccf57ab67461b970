//! The writer queue, and group commit: which writer syncs the commits of others.
//!
//! redb's own `begin_write` waits without limit and in no particular order. This queue is first come, first served;
//! waiting ends with a typed error; and it knows the next writer, which decides how a commit reaches the device: see
//! the [module's page](super).
//!
//! A writer that waits for another to sync its commit is in the same queue. It therefore waits only for writers that
//! were before it. If it reaches the front and its commit is not synced, it syncs itself.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, ThreadId},
    time::{Duration, Instant},
};

use crate::{Context, Error, Result, Version};

pub(super) struct WriterQueue(Mutex<State>);

struct State {
    /// The waiter that holds the permit.
    holder: Option<Waiter>,
    queue: VecDeque<Waiter>,
    /// The last commit that is on the device.
    durable: Version,
    /// How many other writers' commits the last sync included.
    synced_for_others: usize,
}

/// Identified by its condition variable.
struct Waiter {
    /// The thread that began the transaction. The transaction may have been moved to another thread since, but another
    /// `begin` on this thread still fails with `Reentrant`.
    thread: ThreadId,
    purpose: Purpose,
    wake: Arc<Condvar>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Write,
    /// Waits until this commit is on the device.
    Sync(Version),
}

/// The permit to write, held by one writer at a time. Dropping it admits the next writer.
pub(super) struct WritePermit(Arc<WriterQueue>);

/// How waiting for a sync by another writer ended.
pub(super) enum GroupCommit {
    /// The commit is on the device.
    Synced,
    /// The writer reached the front of the queue and has to sync itself.
    SyncNow(WritePermit),
}

impl WriterQueue {
    /// Creates a queue for a database whose commits up to `durable` are on the device.
    pub(super) fn new(durable: Version) -> Self {
        Self(Mutex::new(State { holder: None, queue: VecDeque::new(), durable, synced_for_others: 0 }))
    }

    /// Waits at most `wait` for the permit.
    pub(super) fn acquire(queue: &Arc<Self>, wait: Duration) -> Result<WritePermit> {
        let mut state = queue.lock();
        if state.holder.as_ref().is_some_and(|holder| holder.thread == thread::current().id()) {
            let detail = "this backend admits one writer at a time, so waiting would never end; \
                          use the open transaction, or end it first";
            return Err(Error::Reentrant(Box::new(Context::new(detail))));
        }
        // A wait beyond the range of `Instant` has no deadline.
        let deadline = Instant::now().checked_add(wait);
        let wake = state.enqueue(Purpose::Write);
        if state.holder.is_none() {
            state.admit_next();
        }
        while !state.is_held_by(&wake) {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            state = match left {
                Some(Duration::ZERO) => {
                    state.queue.retain(|waiter| !Arc::ptr_eq(&waiter.wake, &wake));
                    let detail = format!("another writer was still open after waiting {wait:?}");
                    return Err(Error::Conflict(Box::new(Context::new(detail))));
                }
                Some(left) => wake.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
                None => wake.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
        Ok(WritePermit(Arc::clone(queue)))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code under this lock can panic between two dependent updates.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WritePermit {
    /// Returns whether the next waiter in the queue wants to write. It can then sync this commit together with its own.
    pub(super) fn is_followed_by_a_writer(&self) -> bool {
        let state = self.0.lock();
        if state.queue.is_empty() && state.synced_for_others > 0 {
            // The writers whose commits the last sync included are usually about to write again. Yielding the processor
            // gives them time to enter the queue, which saves syncs; without such writers it costs almost nothing.
            drop(state);
            thread::yield_now();
            return self.0.lock().is_writer_next();
        }
        state.is_writer_next()
    }

    /// Returns whether this commit and all before it are on the device.
    pub(super) fn is_durable(&self, commit: Version) -> bool {
        self.0.lock().durable >= commit
    }

    /// Records that this commit and all before it are on the device.
    pub(super) fn set_durable(&self, commit: Version) {
        let mut state = self.0.lock();
        state.durable = commit;
        state.synced_for_others = state.queue.iter().filter(|waiter| waiter.purpose != Purpose::Write).count();
    }

    /// Gives up the permit and waits until this commit is on the device.
    pub(super) fn wait_for_sync(self, commit: Version) -> GroupCommit {
        let queue = Arc::clone(&self.0);
        let wake = queue.lock().enqueue(Purpose::Sync(commit));
        drop(self);
        let mut state = queue.lock();
        loop {
            if state.is_held_by(&wake) {
                drop(state);
                return GroupCommit::SyncNow(Self(queue));
            }
            if state.durable >= commit {
                return GroupCommit::Synced;
            }
            state = wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for WritePermit {
    fn drop(&mut self) {
        self.0.lock().admit_next();
    }
}

impl State {
    fn is_writer_next(&self) -> bool {
        self.queue.front().is_some_and(|next| next.purpose == Purpose::Write)
    }

    fn enqueue(&mut self, purpose: Purpose) -> Arc<Condvar> {
        let wake = Arc::new(Condvar::new());
        self.queue.push_back(Waiter { thread: thread::current().id(), purpose, wake: Arc::clone(&wake) });
        wake
    }

    fn is_held_by(&self, wake: &Arc<Condvar>) -> bool {
        self.holder.as_ref().is_some_and(|holder| Arc::ptr_eq(&holder.wake, wake))
    }

    /// Wakes the waiters whose commits are synced, and gives the permit to the first of the others.
    fn admit_next(&mut self) {
        let durable = self.durable;
        self.queue.retain(|waiter| match waiter.purpose {
            Purpose::Sync(commit) if commit <= durable => {
                waiter.wake.notify_one();
                false
            }
            Purpose::Sync(_) | Purpose::Write => true,
        });
        self.holder = self.queue.pop_front();
        if let Some(next) = &self.holder {
            next.wake.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn queue() -> Arc<WriterQueue> {
        Arc::new(WriterQueue::new(Version::default()))
    }

    #[test]
    fn the_permit_is_given_in_the_order_of_arrival() {
        let queue = queue();
        let held = WriterQueue::acquire(&queue, Duration::ZERO).unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        thread::scope(|scope| {
            for number in 0..8 {
                let (queue, order) = (&queue, &order);
                scope.spawn(move || {
                    let _held = WriterQueue::acquire(queue, LONG).unwrap();
                    order.lock().unwrap().push(number);
                });
                while queue.lock().queue.len() <= number {
                    thread::yield_now();
                }
            }
            drop(held);
        });
        assert_eq!(*order.lock().unwrap(), (0..8).collect::<Vec<_>>());
    }

    #[test]
    fn a_waiter_that_times_out_leaves_the_queue() {
        let queue = queue();
        let held = WriterQueue::acquire(&queue, Duration::ZERO).unwrap();
        let late = thread::scope(|scope| {
            scope.spawn(|| WriterQueue::acquire(&queue, Duration::from_millis(5)).err()).join().unwrap()
        });
        assert!(late.unwrap().is_retryable());
        assert!(queue.lock().queue.is_empty());
        drop(held);
        assert!(WriterQueue::acquire(&queue, Duration::ZERO).is_ok());
    }

    #[test]
    fn a_commit_is_synced_by_the_next_writer_or_by_its_own() {
        for synced in [true, false] {
            let queue = queue();
            let first = WriterQueue::acquire(&queue, Duration::ZERO).unwrap();
            thread::scope(|scope| {
                let second = scope.spawn(|| {
                    let held = WriterQueue::acquire(&queue, LONG).unwrap();
                    assert!(!held.is_followed_by_a_writer(), "the next waiter waits for a sync, not to write");
                    if synced {
                        held.set_durable(Version(2))
                    }
                });
                while queue.lock().queue.is_empty() {
                    thread::yield_now();
                }
                assert!(first.is_followed_by_a_writer());
                match first.wait_for_sync(Version(1)) {
                    GroupCommit::Synced => assert!(synced),
                    GroupCommit::SyncNow(held) => assert!(!synced && !held.is_durable(Version(1))),
                }
                second.join().unwrap();
            });
        }
    }
}
