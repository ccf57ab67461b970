//! The id tier: the keys of records, in batches that a store can load in one round trip. They come from the filter, from the entries of an
//! index within bounds, or from a merge of both.

use std::sync::Arc;

use slate_query::{
    interval::{Interval, IntervalSet},
    key,
    pattern::Direction,
    raw::same,
};
use slate_store::View;

use super::{Resources, entry_test::EntryTest, merge::MergedIds, meter::Meter, packed::Packed};
use crate::{
    Result,
    catalog::IndexInfo,
    entry::IndexEntry,
    interrupt::Interrupt,
    key_range::{KeyRange, RangeWalk},
    plan::{IdPlan, IndexScan, component_ranges},
    spill::{KeySet, Sorter},
};

/// The keys of records, in batches.
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
    /// Once per entry, unless the scan has a limit. The reader removes duplicates.
    AsMet,
}

impl<V: View> IdRows<V> {
    pub(super) fn open(view: &V, plan: IdPlan, resources: &Resources, repeats: Repeats) -> Result<Self> {
        let mut meter = resources.first_meter(&plan);
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

/// The record keys of an index's entries, as often as [`Repeats`] allows.
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

    /// Moves to the next record key, past duplicates if they are removed. Returns `false` after the last.
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

    /// Sorts the record keys of all remaining entries, when the set exceeds the memory limit.
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

/// Walks over the index entries within bounds that pass the checks.
pub(super) struct EntryWalk<V: View> {
    walk: RangeWalk<V>,
    index: Arc<IndexInfo>,
    /// For each checked field, in the order of the index, its position and the encoded values that pass.
    checks: Vec<(usize, Vec<KeyRange>)>,
    filter: Option<EntryTest>,
    interrupt: Interrupt,
    meter: Meter,
    /// See [`IndexScan::firsts`].
    firsts: usize,
    /// The encoded values of the first `firsts` fields in the last entry that was returned.
    group: Vec<u8>,
    /// Whether the walk is already at the next entry.
    is_ahead: bool,
}

impl<V: View> EntryWalk<V> {
    pub(super) fn open(view: &V, scan: IndexScan, interrupt: &Interrupt, meter: Meter) -> Self {
        let IndexScan { index, bounds, checks, direction, limit: _, firsts } = scan;
        let filter = checks.filter.as_ref().map(|filter| EntryTest::new(Arc::clone(filter), &index));
        let fields = index.pattern.fields();
        let check = |(field, set): &(usize, IntervalSet)| {
            let direction = fields.get(*field).map_or(Direction::Ascending, |(_, direction)| *direction);
            (*field, component_ranges(set, direction))
        };
        let mut checks: Vec<_> = checks.values.iter().map(check).collect();
        checks.sort_by_key(|(field, _)| *field);
        let walk = RangeWalk::new(view.clone(), index.keyspace, bounds.into_ranges(), direction);
        Self {
            walk,
            index,
            checks,
            filter,
            interrupt: interrupt.clone(),
            meter,
            firsts,
            group: Vec::new(),
            is_ahead: false,
        }
    }

    /// Moves to the next entry that passes the checks; with `firsts`, to the first entry of the next group. Returns `false` after the last.
    #[inline(always)]
    pub(super) fn advance(&mut self) -> Result<bool> {
        if self.firsts > 0 {
            return self.advance_to_group();
        }
        loop {
            self.interrupt.tick()?;
            if !std::mem::take(&mut self.is_ahead) && !self.walk.advance()? {
                return Ok(false);
            }
            // Reads the entry's bytes only for execution statistics, because it costs time on some stores.
            let entry = if self.meter.is_read() { self.walk.current() } else { None };
            self.meter.key_read(entry);
            if (self.checks.is_empty() && self.filter.is_none()) || self.passes()? {
                return Ok(true);
            }
        }
    }

    /// Moves past the following entries with the same values and extras as the current entry, which the caller passes. Moves past at
    /// most `most` entries, and returns their number.
    pub(super) fn skip_run(&mut self, values: &[u8], extras: &[u8], most: u64) -> Result<u64> {
        // In a unique index, and among the first entries of groups, no two entries have the same values. A condition on
        // `_id` can reject entries with the same values.
        let tests_id = self.filter.as_ref().is_some_and(EntryTest::needs_id);
        if self.index.unique || self.firsts > 0 || self.is_ahead || tests_id {
            return Ok(0);
        }
        let mut passed = 0;
        while passed < most && self.walk.advance()? {
            self.interrupt.tick()?;
            let is_same = |entry: IndexEntry<'_>| same(entry.values, values) && same(entry.extras, extras);
            if !self.current()?.is_some_and(is_same) {
                self.is_ahead = true;
                break;
            }
            let entry = if self.meter.is_read() { self.walk.current() } else { None };
            self.meter.key_read(entry);
            passed += 1;
        }
        Ok(passed)
    }

    /// Moves to the first entry of the next group: of entries that pass the checks and are equal in the first `firsts` fields.
    #[inline(never)]
    fn advance_to_group(&mut self) -> Result<bool> {
        // An encoded value is not empty, so neither is a group.
        let mut more = if self.group.is_empty() {
            self.walk.advance()?
        } else {
            self.walk.leave(&mut self.group, |entry| self.meter.key_read(entry))?
        };
        while more {
            self.interrupt.tick()?;
            if self.meter.is_read() {
                self.meter.key_read(self.walk.current());
            }
            let Some(entry) = self.current()? else { return Ok(false) };
            let group = self.group_of(&entry)?;
            if self.group == entry.values.get(..group).unwrap_or_default() {
                // The group may continue in the next range.
                more = self.walk.leave(&mut self.group, |entry| self.meter.key_read(entry))?;
            } else if (self.checks.is_empty() && self.filter.is_none()) || self.passes()? {
                let Some(entry) = self.current()? else { return Ok(false) };
                let values: Vec<u8> = entry.values.get(..group).unwrap_or_default().into();
                self.group = values;
                if !self.walk.is_ascending() {
                    // A descending walk arrives at the last entry of the group.
                    self.walk.seek_first(&self.group)?;
                    self.meter.key_read(self.walk.current().filter(|_| self.meter.is_read()));
                }
                return Ok(true);
            } else {
                more = self.walk.advance()?;
            }
        }
        Ok(false)
    }

    /// Returns the length of the entry's first `firsts` encoded values, in bytes.
    fn group_of(&self, entry: &IndexEntry<'_>) -> Result<usize> {
        let mut length = 0;
        for (_, direction) in self.index.pattern.fields().iter().take(self.firsts) {
            let rest = entry.values.get(length..).unwrap_or_default();
            length += key::skip(rest, *direction).ok_or_else(|| IndexEntry::damaged(&self.index.name))?;
        }
        Ok(length)
    }

    #[inline(always)]
    pub(super) fn current(&self) -> Result<Option<IndexEntry<'_>>> {
        match self.walk.current() {
            Some((key, value)) => IndexEntry::parse(&self.index, key, value).map(Some),
            None => Ok(None),
        }
    }

    /// Returns whether the current entry passes the checks, so that its record is worth fetching.
    #[inline(never)]
    fn passes(&mut self) -> Result<bool> {
        let Some((key, value)) = self.walk.current() else { return Ok(false) };
        let entry = IndexEntry::parse(&self.index, key, value)?;
        let mut rest = entry.values;
        let mut checks = self.checks.iter();
        let mut next = checks.next();
        for (at, (_, direction)) in self.index.pattern.fields().iter().enumerate() {
            let Some((field, ranges)) = next else { break };
            let damaged = || IndexEntry::damaged(&self.index.name);
            let length = key::skip(rest, *direction).ok_or_else(damaged)?;
            let (value, after) = rest.split_at_checked(length).ok_or_else(damaged)?;
            if *field == at {
                if !ranges.iter().any(|range| range.contains(value)) {
                    return Ok(false);
                }
                next = checks.next();
            }
            rest = after;
        }
        match &mut self.filter {
            Some(filter) => filter.holds(&entry).ok_or_else(|| IndexEntry::damaged(&self.index.name)),
            None => Ok(true),
        }
    }
}
