use std::sync::Arc;

use slate_query::{interval::IntervalSet, key, pattern::Direction, raw::same};
use slate_store::{Cursor, Edge, Keyspace, View};

use super::{entry_test::EntryTest, meter::Meter};
use crate::{
    Result,
    catalog::IndexInfo,
    entry::Entry,
    interrupt::Interrupt,
    key_range::{KeyRange, RangeCursors},
    plan::{IndexScan, component_ranges},
};

/// Walks over several ranges of one keyspace.
pub(super) struct RangeWalk<V: View> {
    cursors: RangeCursors<V>,
    cursor: Option<V::Cursor>,
    /// The number of consecutive groups of equal values with more entries than [`MAX_STEPS`].
    large_groups: usize,
}

/// The number of entries of a group that the walk steps over before it seeks past the others. A step costs a fraction of a
/// seek.
const MAX_STEPS: usize = 4;

/// After a group with more entries, the walk seeks at once. For every one of this many such groups it steps over one entry
/// first, to detect when groups have fewer entries.
const RETRY_STEPS_EVERY: usize = 8;

/// Returns the number of entries to step over after this many consecutive large groups.
fn max_steps(large_groups: usize) -> usize {
    match large_groups {
        0 => MAX_STEPS,
        _ if large_groups % RETRY_STEPS_EVERY == 1 => 1,
        _ => 0,
    }
}

impl<V: View> RangeWalk<V> {
    pub(super) fn new(view: V, keyspace: Keyspace, ranges: Vec<KeyRange>, direction: Direction) -> Self {
        Self { cursors: RangeCursors::new(view, keyspace, ranges, direction), cursor: None, large_groups: 0 }
    }

    /// Moves to the next entry. Returns `false` after the last.
    #[inline(always)]
    pub(super) fn advance(&mut self) -> Result<bool> {
        if let Some(cursor) = &mut self.cursor {
            let more = match self.cursors.direction() {
                Direction::Ascending => cursor.step_forward()?,
                Direction::Descending => cursor.step_back()?,
            };
            if more {
                return Ok(true);
            }
        }
        self.next_range()
    }

    /// Moves past the entries that begin with these encoded values, and counts those that it steps over. A descending walk must
    /// be at the first of them.
    pub(super) fn leave(&mut self, values: &mut Vec<u8>, meter: &mut Meter) -> Result<bool> {
        if !self.is_ascending() {
            return self.advance();
        }
        for _ in 0..max_steps(self.large_groups) {
            if !self.advance()? {
                return Ok(false);
            }
            let entry = self.current();
            if entry.is_some_and(|(key, _)| !key.starts_with(values)) {
                self.large_groups = 0;
                return Ok(true);
            }
            meter.key_read(entry);
        }
        self.large_groups += 1;
        let Some(cursor) = &mut self.cursor else { return Ok(false) };
        // 0xff never follows whole values (docs/format.md), so this key is greater than every entry of the group.
        values.push(0xff);
        let found = cursor.seek(Edge::AtOrAfter(values));
        values.pop();
        if found? { Ok(true) } else { self.next_range() }
    }

    /// Moves to the first entry that begins with these encoded values, in the range of the current entry.
    pub(super) fn seek_first(&mut self, values: &[u8]) -> Result<bool> {
        Ok(self.cursor.as_mut().map_or(Ok(false), |cursor| cursor.seek(Edge::AtOrAfter(values)))?)
    }

    pub(super) fn is_ascending(&self) -> bool {
        self.cursors.direction() == Direction::Ascending
    }

    #[inline(never)]
    fn next_range(&mut self) -> Result<bool> {
        loop {
            let Some(cursor) = self.cursors.next()? else {
                self.cursor = None;
                return Ok(false);
            };
            let found = cursor.current().is_some();
            self.cursor = Some(cursor);
            if found {
                return Ok(true);
            }
        }
    }

    #[inline]
    pub(super) fn current(&self) -> Option<(&[u8], &[u8])> {
        self.cursor.as_ref().and_then(Cursor::current)
    }

    #[inline]
    pub(super) fn shared(&self) -> Option<Arc<[u8]>> {
        self.cursor.as_ref().and_then(Cursor::shared)
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

    /// Moves to the next entry. Returns `false` after the last.
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
            let is_same = |entry: Entry<'_>| same(entry.values, values) && same(entry.extras, extras);
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

    /// Moves to the first entry of the next group of entries that are equal in the leading fields.
    #[inline(never)]
    fn advance_to_group(&mut self) -> Result<bool> {
        // An encoded value is not empty, so neither is a group.
        let mut more = if self.group.is_empty() {
            self.walk.advance()?
        } else {
            self.walk.leave(&mut self.group, &mut self.meter)?
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
                more = self.walk.leave(&mut self.group, &mut self.meter)?;
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

    /// Returns the length of the encoded values that an entry's group shares.
    fn group_of(&self, entry: &Entry<'_>) -> Result<usize> {
        let mut length = 0;
        for (_, direction) in self.index.pattern.fields().iter().take(self.firsts) {
            let rest = entry.values.get(length..).unwrap_or_default();
            length += key::skip(rest, *direction).ok_or_else(|| Entry::damaged(&self.index.name))?;
        }
        Ok(length)
    }

    /// Returns the current entry.
    #[inline(always)]
    pub(super) fn current(&self) -> Result<Option<Entry<'_>>> {
        match self.walk.current() {
            Some((key, value)) => Entry::parse(&self.index, key, value).map(Some),
            None => Ok(None),
        }
    }

    /// Returns whether the current entry passes the checks, so that its record is worth fetching.
    #[inline(never)]
    fn passes(&mut self) -> Result<bool> {
        let Some((key, value)) = self.walk.current() else { return Ok(false) };
        let entry = Entry::parse(&self.index, key, value)?;
        let mut rest = entry.values;
        let mut checks = self.checks.iter();
        let mut next = checks.next();
        for (at, (_, direction)) in self.index.pattern.fields().iter().enumerate() {
            let Some((field, ranges)) = next else { break };
            let damaged = || Entry::damaged(&self.index.name);
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
            Some(filter) => filter.holds(&entry).ok_or_else(|| Entry::damaged(&self.index.name)),
            None => Ok(true),
        }
    }
}
