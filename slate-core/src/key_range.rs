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

    /// Returns the range as bounds. A range from the least key on has no start, because a store may know the size of a whole
    /// keyspace.
    pub(crate) fn bounds(&self) -> Bounds<'_> {
        let start = Some(self.start.as_slice()).filter(|start| !start.is_empty());
        Bounds { start, end: self.end.as_deref() }
    }

    /// Returns whether the range contains every key.
    pub(crate) fn is_all(&self) -> bool {
        self.start.is_empty() && self.end.is_none()
    }
}

/// The cursors of several ranges, one after the other, each at the first entry of its range in the direction of the walk. A store on a
/// network opens many of them in one round.
pub(crate) struct RangeCursors<V: View> {
    view: V,
    keyspace: Keyspace,
    direction: Direction,
    ranges: std::vec::IntoIter<KeyRange>,
    /// The cursors that were opened ahead.
    ahead: std::vec::IntoIter<V::Cursor>,
    /// The most ranges whose cursors are opened at once.
    at_once: usize,
}

impl<V: View> RangeCursors<V> {
    pub(crate) fn new(view: V, keyspace: Keyspace, ranges: Vec<KeyRange>, direction: Direction) -> Self {
        /// The most ranges whose cursors are opened in one round.
        const RANGES_AT_ONCE: usize = 64;
        let (ranges, ahead) = (ranges.into_iter(), Vec::new().into_iter());
        Self { view, keyspace, direction, ranges, ahead, at_once: RANGES_AT_ONCE }
    }

    pub(crate) fn direction(&self) -> Direction {
        self.direction
    }

    /// Opens the next cursor. It has no position if the range is empty.
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

    /// Opens the cursors of the next ranges if none is open, there are several, and the store can do so in one round.
    fn open_ahead(&mut self) -> Result<()> {
        /// What is read for the cursors of one round.
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

/// Counts the keys within ranges. Calls `should_continue` with the number counted so far, at least once for each key that the store steps
/// over and for each range, and returns `None` once that returns false.
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
