use self_cell::self_cell;

use super::{
    RocksSnapshot,
    iterate::{Iterate, Limits},
    overlay::Overlay,
    written::Written,
};
use crate::{Bounds, Cursor, Edge, Keyspace, Result};

/// `None` if the bounds are empty or inverted.
type Walk<'s> = Option<Iterate<'s>>;

self_cell!(
    struct Cell {
        owner: RocksSnapshot,
        #[covariant]
        dependent: Walk,
    }
);

/// A cursor of a [`RocksSnapshot`].
pub struct RocksCursor {
    limits: Limits,
    cell: Cell,
}

impl RocksCursor {
    pub(super) fn open(snapshot: RocksSnapshot, keyspace: Keyspace, bounds: Bounds<'_>) -> Self {
        let (limits, options) = Limits::new(keyspace, bounds);
        let cell = Cell::new(snapshot, |snapshot| (!bounds.is_empty()).then(|| snapshot.iterate(options)));
        Self { limits, cell }
    }
}

impl Cursor for RocksCursor {
    fn seek(&mut self, edge: Edge<'_>) -> Result<bool> {
        let limits = &mut self.limits;
        self.cell.with_dependent_mut(|_, walk| walk.as_mut().map_or(Ok(false), |iterate| iterate.seek(limits, edge)))
    }

    #[inline]
    fn step_forward(&mut self) -> Result<bool> {
        self.cell.with_dependent_mut(|_, walk| walk.as_mut().map_or(Ok(false), Iterate::step_forward))
    }

    #[inline]
    fn step_back(&mut self) -> Result<bool> {
        self.cell.with_dependent_mut(|_, walk| walk.as_mut().map_or(Ok(false), Iterate::step_back))
    }

    #[inline]
    fn current(&self) -> Option<(&[u8], &[u8])> {
        self.cell.borrow_dependent().as_ref()?.current()
    }
}

/// A cursor of a [`RocksTransactionView`](super::RocksTransactionView).
pub struct RocksTransactionCursor<'t>(Walked<'t>);

enum Walked<'t> {
    /// A keyspace that the transaction did not write to.
    Base(RocksCursor),
    Written(Overlay<'t>),
}

impl<'t> RocksTransactionCursor<'t> {
    pub(super) fn new(base: RocksCursor, written: Option<&'t Written>, bounds: Bounds<'_>) -> Self {
        Self(match written {
            None => Walked::Base(base),
            Some(written) => Walked::Written(Overlay::new(base, written, bounds)),
        })
    }
}

impl Cursor for RocksTransactionCursor<'_> {
    fn seek(&mut self, edge: Edge<'_>) -> Result<bool> {
        match &mut self.0 {
            Walked::Base(cursor) => cursor.seek(edge),
            Walked::Written(cursor) => cursor.seek(edge),
        }
    }

    #[inline]
    fn step_forward(&mut self) -> Result<bool> {
        match &mut self.0 {
            Walked::Base(cursor) => cursor.step_forward(),
            Walked::Written(cursor) => cursor.step_forward(),
        }
    }

    #[inline]
    fn step_back(&mut self) -> Result<bool> {
        match &mut self.0 {
            Walked::Base(cursor) => cursor.step_back(),
            Walked::Written(cursor) => cursor.step_back(),
        }
    }

    #[inline]
    fn current(&self) -> Option<(&[u8], &[u8])> {
        match &self.0 {
            Walked::Base(cursor) => cursor.current(),
            Walked::Written(cursor) => cursor.current(),
        }
    }
}
