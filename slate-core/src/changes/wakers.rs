//! Streams that wait for a commit. A waiting stream is an entry in a table and occupies no thread. A commit removes and wakes the entries of the
//! collections that it changed; it does not look at the others.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering, fence},
    },
    task::Waker,
    time::Duration,
};

use ahash::AHashMap;

#[cfg(feature = "async")]
use super::polling::Polling;
use crate::namespace;

/// The interval at which waiting streams look for commits of other processes, which wake no stream here.
pub(crate) const POLL: Duration = Duration::from_millis(10);

/// Whether other processes may commit. Their commits wake no stream here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OtherWriters {
    None,
    Expected,
}

/// What a stream watches.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Watched {
    /// The collection that is stored under this name.
    Collection(Box<str>),
    /// All collections of a database.
    Database(Box<str>),
    /// All databases of the store.
    Store,
}

impl Watched {
    /// Returns whether changes of this collection, a stored name, belong to the stream.
    pub(crate) fn includes(&self, collection: &str) -> bool {
        match self {
            Self::Collection(watched) => **watched == *collection,
            Self::Database(watched) => namespace::split(collection).0 == &**watched,
            Self::Store => true,
        }
    }
}

/// The waiting streams of a database.
#[derive(Debug, Default)]
pub(crate) struct Wakers {
    /// The number of waiting streams. A commit takes the lock only if it is not 0.
    waiting: AtomicUsize,
    next: AtomicU64,
    table: Mutex<AHashMap<Watched, AHashMap<u64, Waker>>>,
    #[cfg(feature = "async")]
    pub(super) polling: Polling,
}

/// The registration of a waiting stream, until it is woken or this is dropped.
#[derive(Debug)]
pub(crate) struct Waiting {
    wakers: Arc<Wakers>,
    watched: Watched,
    number: u64,
}

impl Wakers {
    /// Wakes `waker` at the next commit that changes what the stream watches. It is not woken for a commit that was
    /// visible before: the caller must read once more after this call.
    pub(crate) fn wait(self: &Arc<Self>, watched: &Watched, waker: Waker) -> Waiting {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut table = self.table();
        table.entry(watched.clone()).or_default().insert(number, waker);
        self.waiting.fetch_add(1, Ordering::SeqCst);
        drop(table);
        // Either `committed` sees the waiting stream, or the stream's next read sees the commit.
        fence(Ordering::SeqCst);
        Waiting { wakers: Arc::clone(self), watched: watched.clone(), number }
    }

    /// Wakes the streams that watch these collections. Must be called after the commit has become visible.
    pub(crate) fn committed<'n>(&self, collections: impl Iterator<Item = &'n str>) {
        fence(Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut woken = Vec::new();
        let mut table = self.table();
        for name in collections {
            let database = Watched::Database(namespace::split(name).0.into());
            for watched in [Watched::Collection(name.into()), database, Watched::Store] {
                woken.extend(table.remove(&watched));
            }
        }
        let count: usize = woken.iter().map(|streams| streams.len()).sum();
        self.waiting.fetch_sub(count, Ordering::SeqCst);
        drop(table);
        woken.into_iter().flat_map(IntoIterator::into_iter).map(|(_, waker)| waker).for_each(Waker::wake);
    }

    /// Wakes all streams, whatever they watch.
    pub(crate) fn wake_all(&self) {
        let woken = std::mem::take(&mut *self.table());
        self.waiting.fetch_sub(woken.values().map(|streams| streams.len()).sum(), Ordering::SeqCst);
        woken.into_values().flat_map(IntoIterator::into_iter).map(|(_, waker)| waker).for_each(Waker::wake);
    }

    fn table(&self) -> MutexGuard<'_, AHashMap<Watched, AHashMap<u64, Waker>>> {
        // No code under this lock can panic between two dependent updates.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut table = self.wakers.table();
        let Some(streams) = table.get_mut(&self.watched) else { return };
        let removed = streams.remove(&self.number);
        if removed.is_some() {
            if streams.is_empty() {
                table.remove(&self.watched);
            }
            self.wakers.waiting.fetch_sub(1, Ordering::SeqCst);
        }
        drop(table);
        // Dropped without the lock: a waker may own its task, whose drop removes other registrations.
        drop(removed);
    }
}

#[cfg(test)]
mod tests {
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Counted(AtomicUsize);

    impl Wake for Counted {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_commit_wakes_the_streams_of_what_it_changed_once() {
        let wakers = Arc::new(Wakers::default());
        let watched = [
            Watched::Collection("a".into()),
            Watched::Collection("b".into()),
            Watched::Database("test".into()),
            Watched::Database("shop".into()),
            Watched::Store,
        ];
        let counts: Vec<Arc<Counted>> = watched.iter().map(|_| Arc::default()).collect();
        let wait = || -> Vec<Waiting> {
            let each = watched.iter().zip(&counts);
            each.map(|(watched, count)| wakers.wait(watched, Arc::clone(count).into())).collect()
        };
        let woken = || counts.iter().map(|count| count.0.load(Ordering::SeqCst)).collect::<Vec<_>>();
        let first = wait();
        wakers.committed(["a"].into_iter());
        wakers.committed(["a"].into_iter());
        assert_eq!(woken(), [1, 0, 1, 0, 1]);
        drop(first);
        assert_eq!(wakers.waiting.load(Ordering::SeqCst), 0);
        let second = wait();
        wakers.committed(["$shop.a", "b"].into_iter());
        assert_eq!(woken(), [1, 1, 2, 1, 2]);
        wakers.wake_all();
        drop(second);
        assert_eq!(woken(), [2, 1, 2, 1, 2]);
        assert!(wakers.table().is_empty());
    }
}
