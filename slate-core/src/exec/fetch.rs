use std::sync::Arc;

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
    /// How many rows the caller takes, if a limit says so. Few records beyond them are loaded.
    wanted: Option<Wanted>,
    /// The number of records loaded so far.
    loaded: u64,
    /// Whether this batch is the last.
    is_last: bool,
    at: usize,
    collection: Arc<str>,
    meter: Meter,
}

/// How many rows the caller takes: at the first move, and now. Comparing the two with the records loaded shows how many
/// a filter rejects.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    first: u64,
    left: u64,
}

/// Size of the first batch, small so that few records are loaded needlessly if the caller stops early. Each batch is
/// twice as large as the previous one, up to a size at which the cost of a round trip is negligible. On a store on a network the
/// first batch is the largest: a round trip costs more than some records.
const FIRST_BATCH: usize = 8;
const LARGEST_BATCH: usize = 256;

impl<V: View> FetchRows<V> {
    pub(super) fn open(
        view: &V,
        collection: &CollectionInfo,
        plan: IdPlan,
        resources: &Resources,
        meter: Meter,
    ) -> Result<Self> {
        Ok(Self {
            ids: IdRows::open(view, plan, resources, Repeats::Never)?,
            reader: view.point_reader()?,
            records: collection.records,
            batch: id_batch(FIRST_BATCH),
            next_batch: if view.round_trips().is_some() { LARGEST_BATCH } else { FIRST_BATCH },
            wanted: None,
            loaded: 0,
            is_last: false,
            at: 0,
            collection: Arc::clone(&collection.name),
            meter,
        })
    }

    /// Returns the size of the next batch.
    fn batch_size(&mut self) -> usize {
        let size = match self.wanted {
            None => self.next_batch,
            // As many as are needed if the filter accepts the same part of the records as so far.
            Some(Wanted { first, left }) => {
                let accepted = first.saturating_sub(left);
                let expected = left.saturating_mul(self.loaded).checked_div(accepted).map_or_else(
                    // None was accepted: as many as wanted, then twice as many as before.
                    || left.max(self.loaded),
                    |expected| expected.max(left),
                );
                usize::try_from(expected).unwrap_or(LARGEST_BATCH).clamp(1, self.next_batch)
            }
        };
        self.next_batch = (self.next_batch * 2).min(LARGEST_BATCH);
        size
    }
}

impl<V: View> Rows for FetchRows<V> {
    fn advance(&mut self) -> Result<bool> {
        loop {
            self.at += 1;
            if self.at >= self.batch.len() {
                if self.is_last {
                    return Ok(false);
                }
                let size = self.batch_size();
                self.ids.next_batch(size, &mut self.batch)?;
                self.is_last = self.batch.len() < size;
                self.loaded += u64::try_from(self.batch.len()).unwrap_or(u64::MAX);
                self.at = 0;
                if self.batch.len() == 0 {
                    return Ok(false);
                }
                load(&mut self.reader, self.records, &self.batch)?;
                // Loaded records count as read even if the caller does not consume them.
                let read = if self.meter.is_read() { self.batch.len() } else { 0 };
                for document in (0..read).filter_map(|at| self.reader.loaded(at)) {
                    self.meter.document_read(document);
                }
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
        while rows > 0 && !self.is_last && self.ids.promise() == Promise::Record {
            let most = usize::try_from(rows).unwrap_or(LARGEST_BATCH).min(LARGEST_BATCH);
            self.ids.next_batch(most, &mut self.batch)?;
            self.is_last = self.batch.len() < most;
            rows = rows.saturating_sub(u64::try_from(self.batch.len()).unwrap_or(u64::MAX));
            self.batch.clear();
        }
        Ok(rows)
    }

    /// Sets the number of further rows that the caller takes, so that few records beyond them are loaded.
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

/// Loads the records of a batch. The keys of a first batch are on the stack, so that a short query does not allocate.
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
