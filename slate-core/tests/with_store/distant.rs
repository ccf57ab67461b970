//! A store whose every round counts, as on a network: a page of a cursor, several cursors opened at once, a load of several keys, a commit.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering},
};

use slate_core::CancelToken;

use slate_store::{
    Ahead, Bounds, Capabilities, Changes, Cursor, Durability, Edge, Entries, Keyspace, LocalStore, Optimistic,
    PointReader, ReadEnd, Result, Version, View,
};

use super::btree::{BTreeCursor, BTreePointReader, BTreeView, LocalBTree};

pub(crate) type DistantStore = Optimistic<LocalDistant>;

/// The entries that a cursor reads in one round.
const PAGE: usize = 256;

#[derive(Clone, Default)]
pub(crate) struct Rounds {
    made: Arc<AtomicU64>,
    /// All rounds, also those that were taken.
    all: Arc<AtomicU64>,
    cancels: Arc<Mutex<Option<(u64, CancelToken)>>>,
    loads: Arc<Mutex<Vec<LoadEvent>>>,
}

/// What happens to a load, with the number of its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoadEvent {
    /// It was sent and awaited at once.
    Loaded(usize),
    /// It was sent ahead.
    Sent(usize),
    /// The answer of one that was sent ahead is awaited.
    Awaited(usize),
}

impl Rounds {
    /// Returns what happened to loads since the last call.
    pub(crate) fn take_loads(&self) -> Vec<LoadEvent> {
        std::mem::take(&mut self.loads.lock().unwrap())
    }

    fn record(&self, event: LoadEvent) {
        self.loads.lock().unwrap().push(event);
    }

    /// Returns the rounds since the last call.
    pub(crate) fn take(&self) -> u64 {
        self.made.swap(0, Ordering::Relaxed)
    }

    /// Cancels the token in this round, counted from now on.
    pub(crate) fn cancel_in(&self, round: u64, token: CancelToken) {
        self.take();
        *self.cancels.lock().unwrap() = Some((round, token));
    }

    fn add(&self) {
        self.all.fetch_add(1, Ordering::Relaxed);
        let made = self.made.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some((round, token)) = &*self.cancels.lock().unwrap()
            && made == *round
        {
            token.cancel();
        }
    }
}

#[derive(Default)]
pub(crate) struct LocalDistant {
    btree: LocalBTree,
    pub(crate) rounds: Rounds,
}

impl LocalStore for LocalDistant {
    type Snapshot = DistantView;

    fn capabilities(&self) -> Capabilities {
        Capabilities { name: "distant", ..self.btree.capabilities() }
    }

    fn snapshot(&self) -> Result<DistantView> {
        Ok(DistantView { btree: self.btree.snapshot()?, rounds: self.rounds.clone(), end: None })
    }

    fn apply(&self, changes: &mut Changes<'_>, durability: Durability) -> Result<Version> {
        self.rounds.add();
        self.btree.apply(changes, durability)
    }
}

#[derive(Clone)]
pub(crate) struct DistantView {
    btree: BTreeView,
    rounds: Rounds,
    end: Option<ReadEnd>,
}

impl View for DistantView {
    type Cursor = DistantCursor;
    type PointReader = DistantPointReader;

    fn version(&self) -> Version {
        self.btree.version()
    }

    fn round_trips(&self) -> Option<u64> {
        Some(self.rounds.all.load(Ordering::Relaxed))
    }

    fn cursor(&self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<DistantCursor> {
        let (btree, rounds) = (self.btree.cursor(keyspace, bounds)?, self.rounds.clone());
        Ok(DistantCursor { btree, rounds, end: self.end.clone(), unread: 0 })
    }

    fn ended_by(&self, end: ReadEnd) -> Self {
        Self { end: Some(end), ..self.clone() }
    }

    fn cursors(
        &self,
        keyspace: Keyspace,
        ranges: &[Bounds<'_>],
        edge: Edge<'_>,
        _: usize,
    ) -> Result<Option<Vec<DistantCursor>>> {
        if !ranges.is_empty() {
            self.rounds.add();
            self.end.as_ref().map_or(Ok(()), |end| end())?;
        }
        let open = |bounds: &Bounds<'_>| {
            let mut cursor = self.cursor(keyspace, *bounds)?;
            cursor.btree.seek(edge)?;
            Ok(DistantCursor { unread: PAGE, ..cursor })
        };
        // Fewer than were asked for, so that callers ask for the others.
        ranges.iter().take(40).map(open).collect::<Result<_>>().map(Some)
    }

    /// Travels beside other reads, and so costs no round.
    fn scan_ahead(&self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<Option<Ahead>> {
        let mut entries = Entries::new();
        self.btree.scan(keyspace, bounds, |key, value| {
            entries.push((key.into(), value.into()));
            std::ops::ControlFlow::<()>::Continue(())
        })?;
        Ok(Some(Ahead::new(move || Ok(entries))))
    }

    fn point_reader(&self) -> Result<DistantPointReader> {
        Ok(DistantPointReader { btree: self.btree.point_reader()?, rounds: self.rounds.clone(), ahead: None })
    }
}

pub(crate) struct DistantCursor {
    btree: BTreeCursor,
    rounds: Rounds,
    end: Option<ReadEnd>,
    /// The entries of the page that were not moved to.
    unread: usize,
}

impl DistantCursor {
    fn step(&mut self) {
        match self.unread.checked_sub(1) {
            Some(unread) => self.unread = unread,
            None => {
                self.rounds.add();
                self.unread = PAGE;
            }
        }
    }
}

impl Cursor for DistantCursor {
    /// Can be ended after its round, as if that had found a region without keys.
    fn seek(&mut self, edge: Edge<'_>) -> Result<bool> {
        self.rounds.add();
        self.end.as_ref().map_or(Ok(()), |end| end())?;
        self.unread = PAGE;
        self.btree.seek(edge)
    }

    fn step_forward(&mut self) -> Result<bool> {
        self.step();
        self.btree.step_forward()
    }

    fn step_back(&mut self) -> Result<bool> {
        self.step();
        self.btree.step_back()
    }

    fn current(&self) -> Option<(&[u8], &[u8])> {
        self.btree.current()
    }
}

pub(crate) struct DistantPointReader {
    btree: BTreePointReader,
    rounds: Rounds,
    /// All rounds when a load was sent ahead.
    ahead: Option<u64>,
}

impl PointReader for DistantPointReader {
    fn load(&mut self, keys: &[(Keyspace, &[u8])]) -> Result<()> {
        match self.ahead.take() {
            Some(before) => {
                self.rounds.record(LoadEvent::Awaited(keys.len()));
                // One round for all that travelled side by side.
                if self.rounds.all.load(Ordering::Relaxed) == before {
                    self.rounds.add();
                }
            }
            None => {
                self.rounds.record(LoadEvent::Loaded(keys.len()));
                self.rounds.add();
            }
        }
        self.btree.load(keys)
    }

    fn load_ahead(&mut self, keys: &[(Keyspace, &[u8])]) -> Result<bool> {
        self.rounds.record(LoadEvent::Sent(keys.len()));
        self.ahead = Some(self.rounds.all.load(Ordering::Relaxed));
        Ok(true)
    }

    fn loaded(&self, index: usize) -> Option<&[u8]> {
        self.btree.loaded(index)
    }
}
