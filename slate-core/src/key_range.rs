//! Ranges of keys, the walk over the entries of a keyspace within several of them, and their count.

use std::sync::Arc;

use slate_query::{pattern::Direction, raw::SmallBytes};
use slate_store::{Bounds, Cursor, Edge, Keyspace, View};

use crate::Result;

/// A range of keys from `start` (inclusive) to `end` (exclusive; `None` for no end).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyRange {
    pub(crate) start: SmallBytes,
    pub(crate) end: Option<SmallBytes>,
}

impl KeyRange {
    #[inline]
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        *self.start <= *key && self.end.as_deref().is_none_or(|end| key < end)
    }

    /// Returns the range as bounds. An empty start becomes no start: a store may know the size of a whole keyspace.
    pub(crate) fn bounds(&self) -> Bounds<'_> {
        let start = Some(self.start.as_slice()).filter(|start| !start.is_empty());
        Bounds { start, end: self.end.as_deref() }
    }

    /// Returns whether the range contains every key.
    pub(crate) fn is_all(&self) -> bool {
        self.start.is_empty() && self.end.is_none()
    }
}

/// The cursors of several ranges, one after the other, each at the first entry of its range in the direction of the walk. On a store on a network,
/// many are opened in one round trip.
pub(crate) struct RangeCursors<V: View> {
    view: V,
    keyspace: Keyspace,
    direction: Direction,
    ranges: std::vec::IntoIter<KeyRange>,
    /// The cursors that were opened and not yet returned by `next`.
    ahead: std::vec::IntoIter<V::Cursor>,
    /// The most ranges whose cursors are opened in one round trip; 1 if the store cannot open several.
    at_once: usize,
}

impl<V: View> RangeCursors<V> {
    pub(crate) fn new(view: V, keyspace: Keyspace, ranges: Vec<KeyRange>, direction: Direction) -> Self {
        /// The most ranges whose cursors are opened in one round trip.
        const RANGES_AT_ONCE: usize = 64;
        let (ranges, ahead) = (ranges.into_iter(), Vec::new().into_iter());
        Self { view, keyspace, direction, ranges, ahead, at_once: RANGES_AT_ONCE }
    }

    pub(crate) fn direction(&self) -> Direction {
        self.direction
    }

    /// Opens the next cursor; `None` after the last range. The cursor has no position if its range is empty.
    pub(crate) fn next(&mut self) -> Result<Option<V::Cursor>> {
        self.open_ahead()?;
        if let Some(cursor) = self.ahead.next() {
            return Ok(Some(cursor));
        }
        let Some(range) = self.next_range() else { return Ok(None) };
        let mut cursor = self.view.cursor(self.keyspace, range.bounds())?;
        cursor.seek(self.edge())?;
        Ok(Some(cursor))
    }

    fn next_range(&mut self) -> Option<KeyRange> {
        match self.direction {
            Direction::Ascending => self.ranges.next(),
            Direction::Descending => self.ranges.next_back(),
        }
    }

    fn edge(&self) -> Edge<'static> {
        match self.direction {
            Direction::Ascending => Edge::First,
            Direction::Descending => Edge::Last,
        }
    }

    /// Opens the cursors of the next ranges if none is open, several ranges are left, and the store can open them in one round trip.
    fn open_ahead(&mut self) -> Result<()> {
        /// The bytes that the store reads for the cursors of one round trip.
        const BYTES_AT_ONCE: usize = 256 * 1024;
        if self.ahead.len() > 0 || self.at_once == 1 || self.ranges.len() < 2 {
            return Ok(());
        }
        let ranges = self.ranges.as_slice();
        let bounds: Vec<_> = match self.direction {
            Direction::Ascending => ranges.iter().take(self.at_once).map(KeyRange::bounds).collect(),
            Direction::Descending => ranges.iter().rev().take(self.at_once).map(KeyRange::bounds).collect(),
        };
        let Some(cursors) = self.view.cursors(self.keyspace, &bounds, self.edge(), BYTES_AT_ONCE)? else {
            self.at_once = 1;
            return Ok(());
        };
        for _ in &cursors {
            self.next_range();
        }
        self.ahead = cursors.into_iter();
        Ok(())
    }
}

/// Walks over several ranges of one keyspace.
pub(crate) struct RangeWalk<V: View> {
    cursors: RangeCursors<V>,
    cursor: Option<V::Cursor>,
    /// The number of consecutive groups of equal values that the walk has left by a seek.
    large_groups: usize,
}

/// The number of entries of a group that the walk steps over before it seeks past the others. A step costs a fraction of a
/// seek.
const MAX_STEPS: usize = 4;

/// After a large group, the walk seeks without stepping. For one of this many large groups it steps over one entry
/// first, to detect when groups become smaller.
const RETRY_STEPS_EVERY: usize = 8;

/// Returns the number of entries to step over before a seek, after this many consecutive large groups.
fn max_steps(large_groups: usize) -> usize {
    match large_groups {
        0 => MAX_STEPS,
        _ if large_groups % RETRY_STEPS_EVERY == 1 => 1,
        _ => 0,
    }
}

impl<V: View> RangeWalk<V> {
    pub(crate) fn new(view: V, keyspace: Keyspace, ranges: Vec<KeyRange>, direction: Direction) -> Self {
        Self { cursors: RangeCursors::new(view, keyspace, ranges, direction), cursor: None, large_groups: 0 }
    }

    /// Moves to the next entry. Returns `false` after the last.
    #[inline(always)]
    pub(crate) fn advance(&mut self) -> Result<bool> {
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

    /// Moves past the entries that begin with these encoded values. Calls `stepped` with each entry that it steps over. Returns `false` after the
    /// last entry. A descending walk must be at the first entry of the group.
    pub(crate) fn leave(
        &mut self,
        values: &mut Vec<u8>,
        mut stepped: impl FnMut(Option<(&[u8], &[u8])>),
    ) -> Result<bool> {
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
            stepped(entry);
        }
        self.large_groups += 1;
        let Some(cursor) = &mut self.cursor else { return Ok(false) };
        // 0xff never follows whole values (docs/format.md), so this key is greater than every entry of the group.
        values.push(0xff);
        let found = cursor.seek(Edge::AtOrAfter(values));
        values.pop();
        if found? { Ok(true) } else { self.next_range() }
    }

    /// Moves to the first entry at or after these encoded values, in the range of the current entry. Returns `false`
    /// if there is none.
    pub(crate) fn seek_first(&mut self, values: &[u8]) -> Result<bool> {
        Ok(self.cursor.as_mut().map_or(Ok(false), |cursor| cursor.seek(Edge::AtOrAfter(values)))?)
    }

    pub(crate) fn is_ascending(&self) -> bool {
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
    pub(crate) fn current(&self) -> Option<(&[u8], &[u8])> {
        self.cursor.as_ref().and_then(Cursor::current)
    }

    #[inline]
    pub(crate) fn shared(&self) -> Option<Arc<[u8]>> {
        self.cursor.as_ref().and_then(Cursor::shared)
    }
}

/// Counts the keys within ranges. Calls `should_continue` with the number so far, at least once for each key that the store steps over and for each
/// range. Returns `None` once it returns false.
pub(crate) fn count_keys<V: View>(
    view: &V,
    keyspace: Keyspace,
    ranges: &[KeyRange],
    mut should_continue: impl FnMut(u64) -> bool,
) -> Result<Option<u64>> {
    let mut counted = 0;
    if ranges.len() > 1 && view.cursors(keyspace, &[], Edge::First, 0)?.is_some() {
        let mut cursors = RangeCursors::new(view.clone(), keyspace, ranges.to_vec(), Direction::Ascending);
        while let Some(mut cursor) = cursors.next()? {
            let mut more = cursor.current().is_some();
            while more {
                if !should_continue(counted) {
                    return Ok(None);
                }
                counted += 1;
                more = cursor.step_forward()?;
            }
            if !should_continue(counted) {
                return Ok(None);
            }
        }
        return Ok(Some(counted));
    }
    for range in ranges {
        match view.count(keyspace, range.bounds(), |keys| should_continue(counted + keys))? {
            Some(keys) => counted += keys,
            None => return Ok(None),
        }
        if !should_continue(counted) {
            return Ok(None);
        }
    }
    Ok(Some(counted))
}
