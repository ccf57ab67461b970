use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    time::Instant,
};

use super::{
    after,
    cluster::Cluster,
    cursor::TikvCursor,
    error,
    point_reader::TikvPointReader,
    read::{self, Direction, Page, Range, Values},
    safepoint,
    value::{Chunks, Stored},
};
use crate::{Ahead, Bounds, Edge, Entries, Error, Keyspace, ReadEnd, Result, Version, View};

/// A view of the database at one timestamp.
#[derive(Clone)]
pub struct TikvSnapshot {
    pub(super) cluster: Arc<Cluster>,
    pub(super) at: u64,
    opened: Instant,
    /// Counts the requests of this view, its clones, and everything opened on them.
    traffic: Arc<Traffic>,
    /// The chunks of the large values that were read; `None` unless this is the snapshot of a transaction.
    seen: Option<Arc<Seen>>,
    /// Ends the reads of its cursors early.
    pub(super) end: Option<ReadEnd>,
}

/// Counts what was requested from the cluster.
#[derive(Default)]
struct Traffic {
    round_trips: AtomicU64,
    requests: AtomicU64,
    /// The bytes of keys and values in the answers.
    bytes: AtomicU64,
}

/// The chunks of the large values that a transaction has read, by keyspace and key. Its commit deletes those of replaced values.
pub(super) type Seen = Mutex<HashMap<(Keyspace, Box<[u8]>), Chunks>>;

/// A read that was sent and whose answer is not received yet.
pub(super) struct Sent<T> {
    /// The round trips of the snapshot before it was sent.
    before: u64,
    answer: mpsc::Receiver<Result<T>>,
}

/// Maximum number of keys in one answer while counting.
const COUNTED: u32 = 8192;

/// Maximum number of entries of the first page of a range that is read ahead.
const AHEAD: u32 = 1024;

impl TikvSnapshot {
    /// Creates a snapshot at the timestamp `at`. `opened` must not be later than the time of this timestamp.
    pub(super) fn new(cluster: Arc<Cluster>, at: u64, opened: Instant, seen: Option<Arc<Seen>>) -> Self {
        Self { cluster, at, opened, traffic: Arc::default(), seen, end: None }
    }

    /// Calls `read`. For a snapshot older than `unchecked_age`, then checks that garbage collection had not begun to remove what
    /// it shows.
    pub(super) fn checked<R>(&self, read: impl FnOnce() -> Result<R>) -> Result<R> {
        let found = read();
        if matches!(found, Err(Error::Interrupted(_))) {
            return found;
        }
        if self.opened.elapsed() >= self.cluster.options.unchecked_age {
            safepoint::check(&self.cluster, self.at)?;
        }
        found
    }

    /// Returns whether the reads of this view should continue: the call has neither ended nor been cancelled.
    pub(super) fn goes_on(&self) -> bool {
        self.end.as_ref().is_none_or(|end| end().is_ok())
    }

    pub(super) fn count_trips(&self, round_trips: u64) {
        self.traffic.round_trips.fetch_add(round_trips, Ordering::Relaxed);
        self.cluster.count(round_trips, 0);
    }

    /// Counts requests, of which several can belong to one round trip.
    pub(super) fn count_requests(&self, requests: u64) {
        self.traffic.requests.fetch_add(requests, Ordering::Relaxed);
        self.cluster.count(0, requests);
    }

    /// Counts the bytes and requests of a page.
    pub(super) fn count_page(&self, page: &Page) {
        self.count_bytes(page.bytes);
        self.count_requests(page.requests);
    }

    /// Counts bytes of keys and values that nodes have sent.
    pub(super) fn count_bytes(&self, bytes: usize) {
        self.traffic.bytes.fetch_add(u64::try_from(bytes).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Reads a page by `read`, checks it, and counts it.
    pub(super) fn page(&self, read: impl FnOnce() -> Result<Page>) -> Result<Page> {
        self.checked(read).inspect(|page| self.count_page(page))
    }

    /// Sends a read without waiting for it.
    fn send<T: Send + 'static>(&self, read: impl Future<Output = Result<T>> + Send + 'static) -> Sent<T> {
        let before = self.traffic.round_trips.load(Ordering::Relaxed);
        Sent { before, answer: self.cluster.runtime.begin(read) }
    }

    /// Waits for a read that was sent. Counts a round trip, unless one was counted since: then both were concurrent.
    fn receive<T>(&self, sent: Sent<T>) -> Result<T> {
        if self.traffic.round_trips.load(Ordering::Relaxed) == sent.before {
            self.count_trips(1);
        }
        sent.answer.recv().unwrap_or_else(|error| Err(error::unanswered(error)))
    }

    /// Sends a read of stored keys, which must be sorted and distinct.
    pub(super) fn send_many(&self, keys: Vec<Vec<u8>>) -> Sent<Values> {
        self.count_requests(read::requests_of(&self.cluster, &keys));
        self.send(read::many(Arc::clone(&self.cluster), self.at, keys))
    }

    /// Waits for the answer to [`send_many`](Self::send_many).
    pub(super) fn receive_many(&self, sent: Sent<Values>) -> Result<Values> {
        let values = self.checked(|| self.receive(sent))?;
        self.count_values(&values);
        Ok(values)
    }

    /// Reads stored keys, which must be sorted and distinct.
    pub(super) fn read_many(&self, keys: Vec<Vec<u8>>) -> Result<Values> {
        self.count_trips(1);
        self.count_requests(read::requests_of(&self.cluster, &keys));
        let read = read::many(Arc::clone(&self.cluster), self.at, keys);
        let values = self.checked(|| self.cluster.runtime.wait(read))?;
        self.count_values(&values);
        Ok(values)
    }

    fn count_values(&self, values: &Values) {
        self.count_bytes(values.iter().map(|(key, value)| key.len() + value.len()).sum());
    }

    /// Reads the chunks of a value; returns a value in one piece unchanged.
    pub(super) fn assemble(&self, keyspace: Keyspace, key: &[u8], stored: Stored) -> Result<Stored> {
        let Stored::Chunks(chunks) = stored else { return Ok(stored) };
        self.note(keyspace, key, chunks);
        let requests = u64::from(chunks.count.div_ceil(read::MAX_CHUNKS));
        self.count_trips(requests);
        self.count_requests(requests);
        let value = read::chunks(Arc::clone(&self.cluster), self.at, keyspace, chunks);
        let value = self.checked(|| self.cluster.runtime.wait(value))?;
        self.count_bytes(value.len());
        Ok(Stored::Inline(super::value::inline(&value)))
    }

    /// Returns the entries of a range whose first page is `page`. Reads the following pages.
    fn entries(&self, keyspace: Keyspace, (_, end): Range, mut page: Page) -> Result<Entries> {
        let prefix = self.cluster.layout.entry_prefix();
        let mut entries = Entries::new();
        loop {
            let mut start = page.end;
            if page.has_more && start.is_none() {
                start = page.entries.last().map(|(last, _)| after(last.clone()));
            }
            for (at, stored) in page.entries {
                let key = at.get(prefix..).unwrap_or_default();
                let stored = self.assemble(keyspace, key, stored)?;
                entries.push((key.into(), stored.inline().unwrap_or_default().into()));
            }
            let Some(start) = start else { return Ok(entries) };
            self.count_trips(1);
            let range = (start, end.clone());
            let next = read::page(Arc::clone(&self.cluster), self.at, range, Direction::Up, page.next, None);
            page = self.page(|| self.cluster.runtime.wait(next))?;
        }
    }

    fn note(&self, keyspace: Keyspace, key: &[u8], chunks: Chunks) {
        if let Some(seen) = &self.seen {
            seen.lock().unwrap_or_else(PoisonError::into_inner).insert((keyspace, key.into()), chunks);
        }
    }
}

impl View for TikvSnapshot {
    type Cursor = TikvCursor;
    type PointReader = TikvPointReader;

    fn version(&self) -> Version {
        Version(self.at)
    }

    fn round_trips(&self) -> Option<u64> {
        Some(self.traffic.round_trips.load(Ordering::Relaxed))
    }

    fn requests(&self) -> Option<u64> {
        Some(self.traffic.requests.load(Ordering::Relaxed))
    }

    fn cursor(&self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<TikvCursor> {
        Ok(TikvCursor::new(self.clone(), keyspace, bounds))
    }

    fn cursors(
        &self,
        keyspace: Keyspace,
        ranges: &[Bounds<'_>],
        edge: Edge<'_>,
        bytes: usize,
    ) -> Result<Option<Vec<TikvCursor>>> {
        TikvCursor::open_several(self, keyspace, ranges, edge, bytes).map(Some)
    }

    fn scan_ahead(&self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<Option<Ahead>> {
        let Some(range) = self.cluster.layout.range(keyspace, bounds) else {
            return Ok(Some(Ahead::new(|| Ok(Entries::new()))));
        };
        let snapshot = self.clone();
        let page = read::page(Arc::clone(&self.cluster), self.at, range.clone(), Direction::Up, AHEAD, None);
        let page = self.send(page);
        Ok(Some(Ahead::new(move || {
            let page = snapshot.page(|| snapshot.receive(page))?;
            snapshot.entries(keyspace, range, page)
        })))
    }

    fn ended_by(&self, end: ReadEnd) -> Self {
        Self { end: Some(end), ..self.clone() }
    }

    fn point_reader(&self) -> Result<TikvPointReader> {
        Ok(TikvPointReader::new(self.clone()))
    }

    fn count(
        &self,
        keyspace: Keyspace,
        bounds: Bounds<'_>,
        mut should_continue: impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>> {
        let range = self.cluster.layout.range(keyspace, bounds);
        let (mut counted, mut rest) = (0_u64, range.map(read::Unread::all));
        while let Some(unread) = rest {
            self.count_trips(1);
            let keys = read::keys(Arc::clone(&self.cluster), self.at, unread, COUNTED);
            let keys = self.checked(|| self.cluster.runtime.wait(keys))?;
            self.count_bytes(keys.keys.iter().map(Vec::len).sum());
            self.count_requests(keys.requests);
            // The caller can also end the walk over regions without keys.
            if keys.keys.is_empty() && keys.rest.is_some() && !should_continue(counted.saturating_sub(1)) {
                return Ok(None);
            }
            for _ in &keys.keys {
                if !should_continue(counted) {
                    return Ok(None);
                }
                counted += 1;
            }
            rest = keys.rest;
        }
        Ok(Some(counted))
    }

    /// The bytes of keys and values that nodes have sent for this view.
    fn with_bytes_read<R>(&self, read: impl FnOnce() -> R) -> (R, Option<u64>) {
        let before = self.traffic.bytes.load(Ordering::Relaxed);
        let result = read();
        (result, Some(self.traffic.bytes.load(Ordering::Relaxed).saturating_sub(before)))
    }
}
