use std::{cell::RefCell, sync::Arc};

use slate_query::pattern::Direction;
use slate_store::{Bounds, Cursor, Edge, Keyspace, View};

use crate::{Result, key_range::KeyRange, plan::Probe};

/// Counts keys in a view for the planner. Counts are cached, because many access paths of a query have the same bounds.
pub(crate) struct ViewProbe<'v, V> {
    view: &'v V,
    counted: RefCell<Vec<Counted>>,
}

/// The number of keys within ranges, counted up to a cap.
struct Counted {
    keyspace: Keyspace,
    ranges: Box<[KeyRange]>,
    cap: u64,
    keys: u64,
}

impl Counted {
    /// Returns the count up to another cap, if this count determines it.
    fn up_to(&self, cap: u64) -> Option<u64> {
        (self.keys < self.cap || cap <= self.cap).then(|| self.keys.min(cap))
    }
}

impl<'v, V> ViewProbe<'v, V> {
    pub(crate) fn new(view: &'v V) -> Self {
        Self { view, counted: RefCell::default() }
    }
}

impl<V: View> Probe for ViewProbe<'_, V> {
    fn count(&self, keyspace: Keyspace, ranges: &[KeyRange], cap: u64) -> Result<u64> {
        let mut counted = self.counted.borrow_mut();
        let same = |counted: &&Counted| counted.keyspace == keyspace && *counted.ranges == *ranges;
        if let Some(keys) = counted.iter().filter(same).find_map(|counted| counted.up_to(cap)) {
            return Ok(keys);
        }
        let keys = count(self.view, keyspace, ranges, cap)?;
        counted.push(Counted { keyspace, ranges: ranges.into(), cap, keys });
        Ok(keys)
    }
}

/// Returns the key of the cache: ranges and a cap.
fn count(view: &impl View, keyspace: Keyspace, ranges: &[KeyRange], cap: u64) -> Result<u64> {
    let mut counted = 0;
    for range in ranges {
        let left = cap - counted;
        // Some stores return the exact number without counting. The cap makes the result the same on all stores.
        counted += view.count(keyspace, bounds(range), |counted| counted < left)?.map_or(left, |keys| keys.min(left));
        if counted >= cap {
            return Ok(cap);
        }
    }
    Ok(counted)
}

/// Returns the bounds of a range. A range without start has none, because a store may know the size of a whole
/// keyspace.
pub(super) fn bounds(range: &KeyRange) -> Bounds<'_> {
    let start = Some(range.start.as_slice()).filter(|start| !start.is_empty());
    Bounds { start, end: range.end.as_deref() }
}

/// Walks over several ranges of one keyspace, one cursor at a time.
pub(super) struct RangeWalk<V: View> {
    view: V,
    keyspace: Keyspace,
    direction: Direction,
    ranges: std::vec::IntoIter<KeyRange>,
    cursor: Option<V::Cursor>,
}

impl<V: View> RangeWalk<V> {
    pub(super) fn new(view: V, keyspace: Keyspace, ranges: Vec<KeyRange>, direction: Direction) -> Self {
        Self { view, keyspace, direction, ranges: ranges.into_iter(), cursor: None }
    }

    /// Moves to the next entry. Returns `false` after the last.
    #[inline(always)]
    pub(super) fn advance(&mut self) -> Result<bool> {
        if let Some(cursor) = &mut self.cursor {
            let more = match self.direction {
                Direction::Ascending => cursor.step_forward()?,
                Direction::Descending => cursor.step_back()?,
            };
            if more {
                return Ok(true);
            }
        }
        self.next_range()
    }

    /// Moves past the entries that begin with these encoded values. A descending walk must be at the first of them.
    pub(super) fn leave(&mut self, values: &[u8]) -> Result<bool> {
        if !self.is_ascending() {
            return self.advance();
        }
        // Steps over one entry first: a step costs a fraction of a seek.
        if !self.advance()? || !self.current().is_some_and(|(key, _)| key.starts_with(values)) {
            return Ok(self.current().is_some());
        }
        let Some(cursor) = &mut self.cursor else { return Ok(false) };
        // 0xff never follows whole values (docs/format.md), so this key is greater than every entry of the group.
        let after = [values, &[0xff]].concat();
        if cursor.seek(Edge::AtOrAfter(&after))? { Ok(true) } else { self.next_range() }
    }

    /// Moves to the first entry that begins with these encoded values, in the range of the current entry.
    pub(super) fn seek_first(&mut self, values: &[u8]) -> Result<bool> {
        Ok(self.cursor.as_mut().map_or(Ok(false), |cursor| cursor.seek(Edge::AtOrAfter(values)))?)
    }

    pub(super) fn is_ascending(&self) -> bool {
        self.direction == Direction::Ascending
    }

    /// Moves past the entries that begin with these encoded values and have this value, at most `most`, from the current one on.
    /// Returns their number. Only for ascending walks. They are in one range, because bounds do not divide equal values.
    pub(super) fn skip_run(&mut self, values: &[u8], value: &[u8], most: u64) -> Result<u64> {
        Ok(self.cursor.as_mut().map_or(Ok(0), |cursor| cursor.skip_run(values, value, most))?)
    }

    #[inline(never)]
    fn next_range(&mut self) -> Result<bool> {
        loop {
            let (range, edge) = match self.direction {
                Direction::Ascending => (self.ranges.next(), Edge::First),
                Direction::Descending => (self.ranges.next_back(), Edge::Last),
            };
            let Some(range) = range else {
                self.cursor = None;
                return Ok(false);
            };
            let bounds = Bounds { start: Some(&range.start), end: range.end.as_deref() };
            let mut cursor = self.view.cursor(self.keyspace, bounds)?;
            let found = cursor.seek(edge)?;
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
