use std::{cmp::Ordering, ops::Bound::Unbounded};

use super::{
    RocksCursor,
    written::{Range, Write, Written},
};
use crate::{
    Bounds, Cursor, Edge, Result,
    bounds::{Heading, Landing, OwnedBounds},
};

/// A cursor over a keyspace of a snapshot with a transaction's own writes on top.
///
/// Steps through the snapshot and the writes in parallel. Forwards, the snapshot and the writes are each at their first
/// key that has not been passed, and the cursor is at the smaller of these two keys; backwards, at the greater. If both
/// have the same key, the transaction's write is used.
pub(super) struct Overlay<'t> {
    base: RocksCursor,
    own: Own<'t>,
    heading: Heading,
    place: Place,
}

/// Which of the snapshot and the writes are at the cursor's key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Nowhere,
    Base,
    Own,
    Both,
}

impl<'t> Overlay<'t> {
    pub(super) fn new(base: RocksCursor, written: &'t Written, bounds: Bounds<'_>) -> Self {
        let own =
            Own { written, bounds: OwnedBounds::of(bounds), rest: written.range((Unbounded, Unbounded)), entry: None };
        Self { base, own, heading: Heading::Forward, place: Place::Nowhere }
    }

    fn step(&mut self, heading: Heading) -> Result<bool> {
        if self.place == Place::Nowhere {
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

    /// Moves the snapshot, the writes or both past the cursor's key, depending on which of them are at this key.
    fn pass(&mut self) -> Result<()> {
        let place = std::mem::replace(&mut self.place, Place::Nowhere);
        if matches!(place, Place::Own | Place::Both) {
            self.own.step(self.heading);
        }
        if matches!(place, Place::Base | Place::Both) {
            match self.heading {
                Heading::Forward => self.base.step_forward()?,
                Heading::Back => self.base.step_back()?,
            };
        }
        Ok(())
    }

    /// Determines the cursor's position from the positions of the snapshot and the writes, skipping deleted keys.
    fn settle(&mut self) -> Result<bool> {
        loop {
            let base = self.base.current().map(|(key, _)| key);
            let (place, is_there) = match (base, self.own.entry) {
                (None, None) => (Place::Nowhere, false),
                (Some(_), None) => (Place::Base, true),
                (None, Some((_, value))) => (Place::Own, value.is_some()),
                (Some(base), Some((own, value))) => match (base.cmp(own), self.heading) {
                    (Ordering::Equal, _) => (Place::Both, value.is_some()),
                    (Ordering::Less, Heading::Forward) | (Ordering::Greater, Heading::Back) => (Place::Base, true),
                    (Ordering::Less, Heading::Back) | (Ordering::Greater, Heading::Forward) => {
                        (Place::Own, value.is_some())
                    }
                },
            };
            self.place = place;
            if is_there || place == Place::Nowhere {
                return Ok(is_there);
            }
            self.pass()?;
        }
    }
}

impl Cursor for Overlay<'_> {
    fn seek(&mut self, edge: Edge<'_>) -> Result<bool> {
        self.place = Place::Nowhere;
        self.heading = self.own.seek(edge);
        self.base.seek(edge)?;
        self.settle()
    }

    fn step_forward(&mut self) -> Result<bool> {
        self.step(Heading::Forward)
    }

    fn step_back(&mut self) -> Result<bool> {
        self.step(Heading::Back)
    }

    fn current(&self) -> Option<(&[u8], &[u8])> {
        match self.place {
            Place::Nowhere => None,
            Place::Base => self.base.current(),
            Place::Own | Place::Both => self.own.entry.and_then(|(key, value)| Some((key, value?))),
        }
    }
}

/// Walks over the transaction's writes to a keyspace, including deletions.
struct Own<'t> {
    written: &'t Written,
    bounds: OwnedBounds,
    /// The remaining writes.
    rest: Range<'t>,
    /// The current write.
    entry: Option<Write<'t>>,
}

impl Own<'_> {
    /// Moves to an edge, and returns the direction of the walk.
    fn seek(&mut self, edge: Edge<'_>) -> Heading {
        let (heading, from, to) = match self.bounds.bounds().confine(edge) {
            Landing::Up(from) => (Heading::Forward, from, Unbounded),
            Landing::Down(to) => (Heading::Back, Unbounded, to),
        };
        self.rest = self.written.range((from, to));
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
