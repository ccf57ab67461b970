use std::{cmp::Ordering, ops::Bound::Unbounded, sync::Arc};

use super::{write_set::KeyspaceWrites, written::Range};
use crate::{
    Bounds, Cursor, Edge, Result, Write,
    bounds::{Heading, Landing, OwnedBounds},
};

/// A cursor of an [`OptimisticView`](super::OptimisticView).
pub struct OptimisticCursor<'t, C>(Within<'t, C>);

enum Within<'t, C> {
    /// On a keyspace that the transaction did not write to.
    Base(C),
    Written(Overlay<'t, C>),
}

impl<'t, C: Cursor> OptimisticCursor<'t, C> {
    pub(super) fn new(base: C, written: Option<&'t KeyspaceWrites>, bounds: Bounds<'_>) -> Self {
        Self(match written.filter(|_| !bounds.is_empty()) {
            None => Within::Base(base),
            Some(written) => Within::Written(Overlay::new(base, written, bounds)),
        })
    }
}

impl<C: Cursor> Cursor for OptimisticCursor<'_, C> {
    fn seek(&mut self, edge: Edge<'_>) -> Result<bool> {
        match &mut self.0 {
            Within::Base(cursor) => cursor.seek(edge),
            Within::Written(cursor) => cursor.seek(edge),
        }
    }

    #[inline]
    fn step_forward(&mut self) -> Result<bool> {
        match &mut self.0 {
            Within::Base(cursor) => cursor.step_forward(),
            Within::Written(cursor) => cursor.step(Heading::Forward),
        }
    }

    #[inline]
    fn step_back(&mut self) -> Result<bool> {
        match &mut self.0 {
            Within::Base(cursor) => cursor.step_back(),
            Within::Written(cursor) => cursor.step(Heading::Back),
        }
    }

    #[inline]
    fn current(&self) -> Option<(&[u8], &[u8])> {
        match &self.0 {
            Within::Base(cursor) => cursor.current(),
            Within::Written(cursor) => cursor.current(),
        }
    }

    fn shared(&self) -> Option<Arc<[u8]>> {
        match &self.0 {
            Within::Base(cursor) => cursor.shared(),
            Within::Written(cursor) => {
                (cursor.position == OverlayPosition::Base).then(|| cursor.base.shared()).flatten()
            }
        }
    }
}

/// A cursor over a keyspace of a snapshot with a transaction's own writes on top.
///
/// Steps through the snapshot and the writes in parallel. Forwards, the snapshot and the writes are each at their first
/// key that has not been passed, and the cursor is at the smaller of these two keys; backwards, at the greater. If both
/// have the same key, the transaction's write is used. Keys of the snapshot in a deleted range are passed by a seek.
struct Overlay<'t, C> {
    base: C,
    own: Own<'t>,
    heading: Heading,
    position: OverlayPosition,
}

/// Whether the snapshot, the writes or both have an entry at the cursor's key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OverlayPosition {
    None,
    Base,
    Own,
    Both,
}

impl<'t, C: Cursor> Overlay<'t, C> {
    fn new(base: C, writes: &'t KeyspaceWrites, bounds: Bounds<'_>) -> Self {
        let rest = writes.written().range((Unbounded, Unbounded));
        let own = Own { writes, bounds: OwnedBounds::of(bounds), rest, entry: None };
        Self { base, own, heading: Heading::Forward, position: OverlayPosition::None }
    }

    fn seek(&mut self, edge: Edge<'_>) -> Result<bool> {
        self.position = OverlayPosition::None;
        self.heading = self.own.seek(edge);
        self.base.seek(edge)?;
        self.settle()
    }

    fn step(&mut self, heading: Heading) -> Result<bool> {
        if self.position == OverlayPosition::None {
            return Ok(false);
        }
        if self.heading == heading {
            self.pass()?;
            return self.settle();
        }
        let Some(key) = self.current().map(|(key, _)| key.to_vec()) else { return Ok(false) };
        match heading {
            Heading::Back => self.seek(Edge::Before(&key)),
            Heading::Forward => {
                // Seeks to the current key in the new direction, and steps from there.
                self.seek(Edge::AtOrAfter(&key))?;
                self.step(Heading::Forward)
            }
        }
    }

    /// Moves past the cursor's key whichever is at it: the snapshot, the writes or both.
    fn pass(&mut self) -> Result<()> {
        let position = std::mem::replace(&mut self.position, OverlayPosition::None);
        if matches!(position, OverlayPosition::Own | OverlayPosition::Both) {
            self.own.step(self.heading);
        }
        if matches!(position, OverlayPosition::Base | OverlayPosition::Both) {
            match self.heading {
                Heading::Forward => self.base.step_forward()?,
                Heading::Back => self.base.step_back()?,
            };
        }
        Ok(())
    }

    /// Moves the snapshot past deleted ranges.
    fn pass_deleted(&mut self) -> Result<()> {
        while let Some((key, _)) = self.base.current()
            && let Some(deleted) = self.own.writes.deletes(key)
        {
            let is_there = match (self.heading, deleted.start, deleted.end) {
                (Heading::Forward, _, Some(end)) => self.base.seek(Edge::AtOrAfter(end))?,
                (Heading::Back, Some(start), _) => self.base.seek(Edge::Before(start))?,
                // The deleted range has no end, so nothing follows it.
                (Heading::Forward, _, None) => self.base.seek(Edge::Last)? && self.base.step_forward()?,
                (Heading::Back, None, _) => self.base.seek(Edge::First)? && self.base.step_back()?,
            };
            if !is_there {
                break;
            }
        }
        Ok(())
    }

    /// Determines the cursor's position from those of the snapshot and the writes, skipping deleted keys.
    fn settle(&mut self) -> Result<bool> {
        loop {
            if !self.own.writes.deleted().is_empty() {
                self.pass_deleted()?;
            }
            let base = self.base.current().map(|(key, _)| key);
            let (position, is_there) = match (base, self.own.entry) {
                (None, None) => (OverlayPosition::None, false),
                (Some(_), None) => (OverlayPosition::Base, true),
                (None, Some((_, value))) => (OverlayPosition::Own, value.is_some()),
                (Some(base), Some((own, value))) => match (base.cmp(own), self.heading) {
                    (Ordering::Equal, _) => (OverlayPosition::Both, value.is_some()),
                    (Ordering::Less, Heading::Forward) | (Ordering::Greater, Heading::Back) => {
                        (OverlayPosition::Base, true)
                    }
                    (Ordering::Less, Heading::Back) | (Ordering::Greater, Heading::Forward) => {
                        (OverlayPosition::Own, value.is_some())
                    }
                },
            };
            self.position = position;
            if is_there || position == OverlayPosition::None {
                return Ok(is_there);
            }
            self.pass()?;
        }
    }

    fn current(&self) -> Option<(&[u8], &[u8])> {
        match self.position {
            OverlayPosition::None => None,
            OverlayPosition::Base => self.base.current(),
            OverlayPosition::Own | OverlayPosition::Both => self.own.entry.and_then(|(key, value)| Some((key, value?))),
        }
    }
}

/// A walk over the transaction's writes to a keyspace, including deletions.
struct Own<'t> {
    writes: &'t KeyspaceWrites,
    bounds: OwnedBounds,
    /// The remaining writes.
    rest: Range<'t>,
    /// The current write.
    entry: Option<Write<'t>>,
}

impl Own<'_> {
    /// Moves to an edge. Returns the direction in which entries are searched from it.
    fn seek(&mut self, edge: Edge<'_>) -> Heading {
        let (heading, from, to) = match self.bounds.bounds().confine(edge) {
            Landing::Up(from) => (Heading::Forward, from, Unbounded),
            Landing::Down(to) => (Heading::Back, Unbounded, to),
        };
        self.rest = self.writes.written().range((from, to));
        self.step(heading);
        heading
    }

    fn step(&mut self, heading: Heading) {
        self.entry = match heading {
            Heading::Forward => self.rest.next().filter(|(key, _)| self.bounds.bounds().below_end(key)),
            Heading::Back => self.rest.next_back().filter(|(key, _)| self.bounds.bounds().above_start(key)),
        };
    }
}
