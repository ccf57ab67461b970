//! Fetches: records by their ids, in batches. On a store on a network several batches are loaded at the same time:
//!
//! ```text
//! batch 1   sent, awaited, read
//! batch 2                       sent, awaited, read
//! batch 3                                           sent, awaited, read
//! batch 4                                           sent           awaited, read
//! batch 5                                                          sent           awaited, read
//! batch 6                                                          sent                    awaited, …
//! ```
//!
//! The first batch is loaded alone: the caller may need no other one, and its records show how many records the next ones may have.
//! Then the number of batches in flight doubles with each batch, because later records can still be longer.

use std::{collections::VecDeque, sync::Arc};

use slate_query::raw::Doc;
use slate_store::{Keyspace, PointReader, View};

use super::{
    Resources,
    ids::{IdRows, Promise, Repeats, id_batch},
    meter::Meter,
    packed::Packed,
    rows::{Record, RecordRows, Rows},
};
use crate::{Error, Result, catalog::CollectionInfo, plan::IdPlan};

/// Fetches records by their ids, in batches that a store can load in one round trip.
pub(crate) struct FetchRows<V: View> {
    ids: IdRows<V>,
    reader: V::PointReader,
    records: Keyspace,
    batch: Packed,
    next_batch: usize,
    /// The batches in flight. `None` on a store on this machine.
    ahead: Option<LoadsAhead<V>>,
    /// How many rows the caller needs; `None` without a limit. Few records beyond them are loaded.
    wanted: Option<Wanted>,
    /// The number of records in the batches that were read so far, and in the current one.
    loaded: u64,
    /// Whether all ids have been read into batches.
    ids_are_read: bool,
    at: usize,
    collection: Arc<str>,
    meter: Meter,
}

/// How many rows the caller needs: at the first move, and now. Comparing the two with the records loaded shows how many a filter
/// rejects.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    first: u64,
    left: u64,
}

/// Number of records in the first batch, small so that few records are loaded needlessly if the caller stops early. Each batch is twice
/// as large as the previous one, up to a size at which the cost of a round trip is negligible. On a store on a network the first batch
/// already has this size: a round trip costs more than some records.
const FIRST_BATCH: usize = 8;
const LARGEST_BATCH: usize = 256;

/// Intended size of a batch on a store on a network, in bytes, if its records are as long as those of the batch before. Multiplied by
/// [`BATCHES_AHEAD`], it is the memory that a fetch uses beside the current batch; more if later records are longer.
const BATCH_BYTES: usize = 2 << 20;

/// Maximum number of batches in flight, after the first ones have shown how long records are.
const BATCHES_AHEAD: usize = 4;

/// The batches whose loads were sent and are not awaited yet, in order.
struct LoadsAhead<V: View> {
    view: V,
    sent: VecDeque<(V::PointReader, Packed)>,
    /// The number of records in the batches of `sent`.
    records: u64,
    /// Maximum number of batches in flight.
    most: usize,
    /// Whether the store has started every load so far without waiting for its result.
    sends: bool,
}

impl<V: View> LoadsAhead<V> {
    /// Starts to load a batch with a reader of its own, and adds both to `sent`.
    fn send(&mut self, records: Keyspace, batch: Packed) -> Result<()> {
        let mut reader = self.view.point_reader()?;
        let keys: Vec<_> = batch.iter().map(|key| (records, key)).collect();
        self.sends &= reader.load_ahead(&keys)?;
        self.records += records_of(&batch);
        self.sent.push_back((reader, batch));
        Ok(())
    }

    /// Removes the next batch, and the reader that loads it. `None` if no batch is in flight.
    fn next(&mut self) -> Option<(V::PointReader, Packed)> {
        let (reader, batch) = self.sent.pop_front()?;
        self.records = self.records.saturating_sub(records_of(&batch));
        Some((reader, batch))
    }

    /// Doubles the number of batches in flight, up to [`BATCHES_AHEAD`], if the store sends loads ahead.
    fn widen(&mut self) {
        if self.sends {
            self.most = (self.most * 2).min(BATCHES_AHEAD);
        }
    }

    /// Drops the results of the loads in flight. Their batches are loaded again when they are read.
    fn park(&mut self) {
        for (reader, _) in &mut self.sent {
            if let Ok(fresh) = self.view.point_reader() {
                *reader = fresh;
            }
        }
    }
}

fn records_of(batch: &Packed) -> u64 {
    u64::try_from(batch.len()).unwrap_or(u64::MAX)
}

impl<V: View> FetchRows<V> {
    pub(super) fn open(
        view: &V,
        collection: &CollectionInfo,
        plan: IdPlan,
        resources: &Resources,
        meter: Meter,
    ) -> Result<Self> {
        let is_remote = view.round_trips().is_some();
        let ahead = || LoadsAhead { view: view.clone(), sent: VecDeque::new(), records: 0, most: 1, sends: true };
        Ok(Self {
            ids: IdRows::open(view, plan, resources, Repeats::Never)?,
            reader: view.point_reader()?,
            records: collection.records,
            batch: id_batch(FIRST_BATCH),
            next_batch: if is_remote { LARGEST_BATCH } else { FIRST_BATCH },
            ahead: is_remote.then(ahead),
            wanted: None,
            loaded: 0,
            ids_are_read: false,
            at: 0,
            collection: Arc::clone(&collection.name),
            meter,
        })
    }

    /// Returns the size of the next batch, at least one; `None` if `travelling` records are in flight and the caller is expected to
    /// need no others.
    fn batch_size(&self, travelling: u64) -> Option<usize> {
        let expected = self.wanted.map(|Wanted { first, left }| {
            // As many as are needed if the filter accepts the same part of the records as so far.
            let accepted = first.saturating_sub(left);
            left.saturating_mul(self.loaded).checked_div(accepted).map_or_else(
                // None was accepted: as many as the caller needs, or as many as were loaded so far, if that is more.
                || left.max(self.loaded),
                |expected| expected.max(left),
            )
        });
        let Some(expected) = expected else { return Some(self.next_batch) };
        let rest = expected.saturating_sub(travelling);
        let size = usize::try_from(rest).unwrap_or(LARGEST_BATCH).min(self.next_batch);
        (size > 0 || travelling == 0).then_some(size.max(1))
    }

    /// Moves to the next batch and loads it. Returns `false` after the last.
    fn next_batch(&mut self) -> Result<bool> {
        if self.loaded > 0 {
            self.send_ahead()?;
        }
        match self.ahead.as_mut().and_then(LoadsAhead::next) {
            Some((reader, batch)) => {
                (self.reader, self.batch) = (reader, batch);
                self.ahead.iter_mut().for_each(LoadsAhead::widen);
            }
            None if self.ids_are_read => return Ok(false),
            None => {
                let size = self.batch_size(0).unwrap_or(1);
                self.ids.next_batch(size, &mut self.batch)?;
                self.ids_are_read = self.batch.len() < size;
            }
        }
        self.at = 0;
        self.loaded += records_of(&self.batch);
        if self.batch.len() == 0 {
            return Ok(false);
        }
        load(&mut self.reader, self.records, &self.batch)?;
        self.next_batch = match self.ahead {
            Some(_) => self.batch_of_bytes(),
            None => (self.next_batch * 2).min(LARGEST_BATCH),
        };
        // Loaded records count as read even if the caller does not consume them.
        let read = if self.meter.is_read() { self.batch.len() } else { 0 };
        for document in (0..read).filter_map(|at| self.reader.loaded(at)) {
            self.meter.document_read(document);
        }
        Ok(true)
    }

    /// Sends the loads of the batches that follow the current one.
    fn send_ahead(&mut self) -> Result<()> {
        let Some(mut ahead) = self.ahead.take() else { return Ok(()) };
        while !self.ids_are_read
            && ahead.sent.len() < ahead.most
            && let Some(size) = self.batch_size(ahead.records)
        {
            let mut batch = id_batch(size);
            self.ids.next_batch(size, &mut batch)?;
            self.ids_are_read = batch.len() < size;
            if batch.len() > 0 {
                ahead.send(self.records, batch)?;
            }
        }
        self.ahead = Some(ahead);
        Ok(())
    }

    /// Returns how many records a batch of [`BATCH_BYTES`] has, if they are as long as those of the current one.
    fn batch_of_bytes(&self) -> usize {
        let bytes: usize = (0..self.batch.len()).filter_map(|at| self.reader.loaded(at)).map(<[u8]>::len).sum();
        let each = bytes.div_ceil(self.batch.len().max(1)).max(1);
        (BATCH_BYTES / each).clamp(1, LARGEST_BATCH)
    }
}

impl<V: View> Rows for FetchRows<V> {
    fn park(&mut self) {
        self.ahead.iter_mut().for_each(LoadsAhead::park);
    }

    fn advance(&mut self) -> Result<bool> {
        loop {
            self.at += 1;
            if self.at >= self.batch.len() && !self.next_batch()? {
                return Ok(false);
            }
            if self.reader.loaded(self.at).is_some() {
                self.meter.document_used();
                return Ok(true);
            }
            if self.ids.promise() == Promise::Record {
                return Err(Error::dangling(&self.collection));
            }
        }
    }

    #[inline]
    fn current(&self) -> Option<Doc<'_>> {
        self.reader.loaded(self.at).map(Doc::stored)
    }

    #[inline]
    fn shared(&self) -> Option<Arc<[u8]>> {
        self.reader.loaded_shared(self.at)
    }

    /// Skips up to `rows` records before the first move, without loading them. Returns the number left to skip: an id
    /// from the filter may have no record, which only loading it can show.
    fn skip(&mut self, mut rows: u64) -> Result<u64> {
        while rows > 0 && !self.ids_are_read && self.ids.promise() == Promise::Record {
            let most = usize::try_from(rows).unwrap_or(LARGEST_BATCH).min(LARGEST_BATCH);
            self.ids.next_batch(most, &mut self.batch)?;
            self.ids_are_read = self.batch.len() < most;
            rows = rows.saturating_sub(records_of(&self.batch));
            self.batch.clear();
        }
        Ok(rows)
    }

    /// Sets the number of further rows that the caller needs, so that few records beyond them are loaded.
    #[inline]
    fn want(&mut self, rows: u64) {
        match &mut self.wanted {
            Some(wanted) => wanted.left = rows,
            None => self.wanted = Some(Wanted { first: rows, left: rows }),
        }
    }
}

impl<V: View> RecordRows for FetchRows<V> {
    #[inline]
    fn record(&self) -> Option<Record<'_>> {
        Some(Record { key: self.batch.get(self.at)?, stored: self.reader.loaded(self.at)? })
    }
}

/// Loads the records of a batch. Up to [`FIRST_BATCH`] keys are on the stack, so that a short query does not allocate.
fn load(reader: &mut impl PointReader, records: Keyspace, batch: &Packed) -> Result<()> {
    let mut few = [(records, &[][..]); FIRST_BATCH];
    match few.get_mut(..batch.len()) {
        Some(keys) => {
            keys.iter_mut().zip(batch.iter()).for_each(|((_, place), key)| *place = key);
            reader.load(keys)?;
        }
        None => {
            let mut keys = Vec::with_capacity(batch.len());
            keys.extend(batch.iter().map(|key| (records, key)));
            reader.load(&keys)?;
        }
    }
    Ok(())
}
