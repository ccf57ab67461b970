use ::redb::{AccessGuard, ReadableTable};
use self_cell::self_cell;

use super::{RedbSnapshot, ahead::prefetch_next, error, snapshot::ReadTable, table::Bytes};
use crate::{
    Bounds, Cursor, Edge, Error, Keyspace, Result,
    bounds::{Heading, Landing, OwnedBounds},
};

/// A cursor on an entry. redb's own cursor is at a gap between entries; this one is on the entry that it last crossed.
#[derive(Default)]
struct Place<'t> {
    gap: Option<::redb::Cursor<'t, Bytes, Bytes>>,
    heading: Option<Heading>,
    entry: Option<(AccessGuard<'t, Bytes>, AccessGuard<'t, Bytes>)>,
}

impl<'t> Place<'t> {
    fn seek(
        &mut self,
        table: &'t impl ReadableTable<Bytes, Bytes>,
        bounds: Bounds<'_>,
        edge: Edge<'_>,
    ) -> Result<bool> {
        // Releases the old page before getting another one. After an error the cursor has no position.
        (self.gap, self.entry) = (None, None);
        let (gap, heading) = match bounds.confine(edge) {
            Landing::Up(from) => (table.lower_bound(from), Heading::Forward),
            Landing::Down(from) => (table.upper_bound(from), Heading::Back),
        };
        self.gap = Some(gap.map_err(error::storage)?);
        self.cross(bounds, heading)
    }

    #[inline]
    fn step(&mut self, bounds: Bounds<'_>, heading: Heading) -> Result<bool> {
        if self.entry.is_none() {
            return Ok(false);
        }
        if self.heading != Some(heading) {
            self.cross(bounds, heading)?; // Moves back over the current entry.
        }
        self.cross(bounds, heading)
    }

    #[inline]
    fn cross(&mut self, bounds: Bounds<'_>, heading: Heading) -> Result<bool> {
        self.heading = Some(heading);
        let Some(gap) = &mut self.gap else {
            self.entry = None;
            return Ok(false);
        };
        let crossed = match heading {
            Heading::Forward => gap.next(),
            Heading::Back => gap.prev(),
        };
        // The last entry is held until here, because a failed step reports its key.
        // An entry's guards are large, and moving them would cost more than the step, so the entry is read in place.
        match crossed {
            Ok(entry) => self.entry = entry,
            Err(error) => return Err(error::storage(error)),
        }
        let is_within = self.entry.as_ref().is_some_and(|(key, _)| match heading {
            Heading::Forward => bounds.below_end(key.value()),
            Heading::Back => bounds.above_start(key.value()),
        });
        match &self.entry {
            Some((_, value)) if is_within => prefetch_next(value.value(), heading),
            _ => self.entry = None,
        }
        Ok(is_within)
    }

    #[inline]
    fn current(&self) -> Option<(&[u8], &[u8])> {
        self.entry.as_ref().map(|(key, value)| (key.value(), value.value()))
    }
}

self_cell!(
    struct Cell {
        owner: ReadTable,
        #[not_covariant]
        dependent: Place,
    }
);

/// A cursor of a [`RedbSnapshot`].
pub struct RedbCursor {
    keyspace: Keyspace,
    bounds: OwnedBounds,
    // redb has no cursor that owns its table, and the guards do not keep pages alive. The cell does both.
    cell: Cell,
    snapshot: RedbSnapshot,
}

impl RedbCursor {
    pub(super) fn open(snapshot: RedbSnapshot, keyspace: Keyspace, table: ReadTable, bounds: Bounds<'_>) -> Self {
        // Invalid bounds contain no entries.
        let table = table.filter(|_| !bounds.is_empty());
        let cell = Cell::new(table, |_| Place::default());
        Self { keyspace, bounds: OwnedBounds::of(bounds), cell, snapshot }
    }

    /// Adds the key of the last entry, or else the start of the bounds, to an error of damaged bytes. Leaves the cursor
    /// without a position.
    #[cold]
    fn failed(&mut self, error: Error) -> Error {
        let last = self.cell.with_dependent_mut(|_, place| {
            // The entry itself may be damaged.
            let last = self.snapshot.guarded(|| Ok(place.current().map(|(key, _)| key.to_vec()))).unwrap_or_default();
            (place.gap, place.entry) = (None, None);
            last
        });
        let start = self.bounds.bounds().start;
        error.near(self.keyspace, last.as_deref().or(start).unwrap_or_default())
    }
}

impl Cursor for RedbCursor {
    fn seek(&mut self, edge: Edge<'_>) -> Result<bool> {
        let bounds = self.bounds.bounds();
        let sought = self.cell.with_dependent_mut(|table, place| match table {
            Some(table) => self.snapshot.guarded(|| place.seek(&**table, bounds, edge)),
            None => Ok(false),
        });
        sought.map_err(|error| self.failed(error))
    }

    #[inline]
    fn step_forward(&mut self) -> Result<bool> {
        let bounds = self.bounds.bounds();
        let stepped =
            self.cell.with_dependent_mut(|_, place| self.snapshot.guarded(|| place.step(bounds, Heading::Forward)));
        stepped.map_err(|error| self.failed(error))
    }

    #[inline]
    fn step_back(&mut self) -> Result<bool> {
        let bounds = self.bounds.bounds();
        let stepped =
            self.cell.with_dependent_mut(|_, place| self.snapshot.guarded(|| place.step(bounds, Heading::Back)));
        stepped.map_err(|error| self.failed(error))
    }

    #[inline]
    fn current(&self) -> Option<(&[u8], &[u8])> {
        self.cell.with_dependent(|_, place| place.current())
    }
}
