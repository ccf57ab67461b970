use self_cell::self_cell;

use super::{
    RocksSnapshot,
    iterate::{Iterate, Limits},
};
use crate::{Bounds, Cursor, Edge, Keyspace, Result};

/// The iterator of a cursor; `None` if its bounds are empty or inverted.
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
