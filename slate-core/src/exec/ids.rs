use slate_query::interval::{Interval, IntervalSet};
use slate_store::View;

use super::{Resources, merge::MergedIds, meter::Meter, packed::Packed, walk::EntryWalk};
use crate::{
    Result,
    interrupt::Interrupt,
    plan::{IdPlan, IndexScan},
    spill::{KeySet, Sorter},
};

/// The id tier: keys of records, in batches that a store can load in one round trip.
pub(super) struct IdRows<V: View> {
    ids: Ids<V>,
    meter: Meter,
}

enum Ids<V: View> {
    /// Keys of `_id`s in the filter, and how many of them have been returned.
    Points(IntervalSet, usize),
    Index(Box<IndexIds<V>>),
    Merged(Box<MergedIds>),
}

/// Meaning of an id without a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Promise {
    /// Corruption, because the id came from an index entry.
    Record,
    /// No match, because the id came from the filter.
    Nothing,
}

/// Bytes reserved per record key. Few keys are longer; the key of an ObjectId has 13.
const USUAL_KEY_BYTES: usize = 16;

/// Returns an empty batch for this many record keys.
pub(super) fn id_batch(keys: usize) -> Packed {
    Packed::with_capacity(keys, keys * USUAL_KEY_BYTES)
}

/// How often an id may be returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeats {
    Never,
    /// Once per entry; the reader removes duplicates.
    AsMet,
}

impl<V: View> IdRows<V> {
    pub(super) fn open(view: &V, plan: IdPlan, resources: &Resources, repeats: Repeats) -> Result<Self> {
        let mut meter = resources.meter(plan.stage());
        let start = meter.start();
        let ids = match plan {
            IdPlan::Points(ids) => Ids::Points(ids, 0),
            IdPlan::Index(scan) => Ids::Index(Box::new(IndexIds::open(view, scan, resources, repeats, &meter))),
            IdPlan::Merge { how, inputs } => {
                Ids::Merged(Box::new(MergedIds::gather(view, how, inputs, resources, meter.same())?))
            }
        };
        meter.stop(start);
        Ok(Self { ids, meter })
    }

    pub(super) fn promise(&self) -> Promise {
        match &self.ids {
            Ids::Points(..) => Promise::Nothing,
            Ids::Index(_) => Promise::Record,
            Ids::Merged(ids) => ids.promise(),
        }
    }

    /// Fills `batch` with at most `most` further ids. The batch is empty after the last id.
    pub(super) fn next_batch(&mut self, most: usize, batch: &mut Packed) -> Result<()> {
        let start = self.meter.start();
        batch.clear();
        while batch.len() < most {
            let id = match &mut self.ids {
                Ids::Points(ids, next) => {
                    let key = ids.iter().nth(*next).and_then(Interval::as_point);
                    if key.is_some() {
                        *next += 1;
                        self.meter.key_read(None);
                    }
                    key
                }
                Ids::Index(ids) => ids.next()?,
                Ids::Merged(ids) => ids.next()?,
            };
            let Some(id) = id else { break };
            batch.push(id);
        }
        self.meter.counted.rows += u64::try_from(batch.len()).unwrap_or(u64::MAX);
        self.meter.stop(start);
        Ok(())
    }
}

/// The record keys of an index's entries, each once.
pub(super) struct IndexIds<V: View> {
    walk: EntryWalk<V>,
    once: Once,
    left: u64,
    interrupt: Interrupt,
    meter: Meter,
}

/// How duplicates are removed.
enum Once {
    /// Duplicates are not removed: a record has one entry, or duplicates are allowed.
    NotNeeded,
    /// A set of the seen keys in memory detects duplicates.
    Seen(KeySet),
    /// The remaining keys are sorted, because the set exceeded the memory limit.
    Gathered(Box<Sorter>),
}

impl<V: View> IndexIds<V> {
    fn open(view: &V, scan: IndexScan, resources: &Resources, repeats: Repeats, meter: &Meter) -> Self {
        let once = match repeats {
            // A limit counts distinct records, so with one the duplicates are removed here.
            Repeats::AsMet if scan.limit.is_none() => Once::NotNeeded,
            Repeats::AsMet | Repeats::Never if !scan.finds_once() => Once::Seen(KeySet::new(resources.memory.clone())),
            Repeats::AsMet | Repeats::Never => Once::NotNeeded,
        };
        Self {
            left: scan.limit.unwrap_or(u64::MAX),
            walk: EntryWalk::open(view, scan, &resources.interrupt, meter.same()),
            once,
            interrupt: resources.interrupt.clone(),
            meter: meter.same(),
        }
    }

    fn next(&mut self) -> Result<Option<&[u8]>> {
        if self.left == 0 || !self.advance()? {
            self.left = 0;
            return Ok(None);
        }
        self.left -= 1;
        match &self.once {
            Once::Gathered(gathered) => Ok(gathered.current().map(|row| row.payload)),
            Once::NotNeeded | Once::Seen(_) => Ok(self.walk.current()?.map(|entry| entry.record_key)),
        }
    }

    /// Moves to the next record key that was not returned before.
    fn advance(&mut self) -> Result<bool> {
        if let Once::Seen(seen) = &self.once
            && seen.is_full()
        {
            self.gather()?;
        }
        loop {
            if let Once::Gathered(gathered) = &mut self.once {
                self.interrupt.tick()?;
                return gathered.advance();
            }
            if !self.walk.advance()? {
                return Ok(false);
            }
            let Once::Seen(seen) = &mut self.once else { return Ok(true) };
            let Some(entry) = self.walk.current()? else { return Ok(false) };
            if seen.insert(entry.record_key)? {
                return Ok(true);
            }
        }
    }

    /// Reads all remaining entries when the set exceeds the memory limit.
    fn gather(&mut self) -> Result<()> {
        let Once::Seen(seen) = std::mem::replace(&mut self.once, Once::NotNeeded) else { return Ok(()) };
        let mut overflow = seen.overflow()?;
        while self.walk.advance()? {
            if let Some(entry) = self.walk.current()? {
                overflow.push(entry.record_key)?;
            }
        }
        let gathered = overflow.finish(&mut self.interrupt)?;
        self.meter.spilled(gathered.spilled());
        self.once = Once::Gathered(Box::new(gathered));
        Ok(())
    }
}
