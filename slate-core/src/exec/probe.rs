use std::sync::Arc;

use slate_query::pattern::Direction;
use slate_store::{Bounds, Cursor, Edge, Estimate, Keyspace, View};

use crate::{
    Result,
    plan::{ByteRange, Probe},
};

/// Counts keys through a view, for the planner.
pub(crate) struct ViewProbe<'v, V>(pub(crate) &'v V);

impl<V: View> Probe for ViewProbe<'_, V> {
    fn count(&self, keyspace: Keyspace, ranges: &[ByteRange], cap: u64) -> Result<u64> {
        let mut counted = 0;
        for range in ranges {
            // A store may know the size of a keyspace that is asked for without bounds.
            let start = Some(range.start.as_slice()).filter(|start| !start.is_empty());
            let bounds = Bounds { start, end: range.end.as_deref() };
            counted += match self.0.estimate(keyspace, bounds, cap - counted)? {
                Estimate::Exact(keys) | Estimate::AtLeast(keys) => keys,
            };
            if counted >= cap {
                return Ok(cap);
            }
        }
        Ok(counted)
    }
}

/// A walk over several ranges of one keyspace, one cursor at a time.
pub(super) struct RangeWalk<V: View> {
    view: V,
    keyspace: Keyspace,
    direction: Direction,
    ranges: std::vec::IntoIter<ByteRange>,
    cursor: Option<V::Cursor>,
}

impl<V: View> RangeWalk<V> {
    pub(super) fn new(view: V, keyspace: Keyspace, ranges: Vec<ByteRange>, direction: Direction) -> Self {
        Self { view, keyspace, direction, ranges: ranges.into_iter(), cursor: None }
    }

    #[inline]
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
