use super::write_set::WriteSet;
use crate::{Change, Keyspace, LastStage, LastWrites, Result, Version, Write};

/// The changes of one commit, for [`LocalStore::apply`](crate::LocalStore::apply).
pub struct Changes<'c> {
    writes: &'c WriteSet,
    last: Option<Last<'c>>,
    /// Whether the last stage failed, and not the store.
    is_refused: bool,
}

/// The last stage, and the check of its writes before the store applies them.
struct Last<'c> {
    stage: LastStage<'c>,
    check: &'c mut dyn FnMut(Keyspace, &[Write<'_>]) -> Result<()>,
}

impl<'c> Changes<'c> {
    pub(crate) fn of(writes: &'c WriteSet) -> Self {
        Self { writes, last: None, is_refused: false }
    }

    pub(super) fn with_last(
        writes: &'c WriteSet,
        stage: LastStage<'c>,
        check: &'c mut dyn FnMut(Keyspace, &[Write<'_>]) -> Result<()>,
    ) -> Self {
        Self { writes, last: Some(Last { stage, check }), is_refused: false }
    }

    /// Returns the number of changes; `None` if there is a last stage, whose writes are not known yet. Then [`each`](Self::each) can fail with an
    /// error of its own.
    pub fn count(&self) -> Option<usize> {
        self.last.is_none().then(|| self.writes.len())
    }

    /// Calls `apply` with all changes. Must be called once, with the version of the commit.
    ///
    /// # Errors
    /// The errors of `apply`. If there is a last stage, also its errors, such as [`Conflict`](crate::Error::Conflict): then none of the changes may
    /// become visible.
    pub fn each(&mut self, version: Version, mut apply: impl FnMut(Keyspace, Change<'_>) -> Result<()>) -> Result<()> {
        self.writes.each(&mut apply)?;
        let Some(Last { stage, check }) = &mut self.last else { return Ok(()) };
        let mut passed = Passed { check, apply, has_failed: false };
        let made = stage(version, &mut passed);
        self.is_refused = made.is_err() && !passed.has_failed;
        made
    }

    /// Whether [`each`](Self::each) failed by the last stage, and not by the store.
    pub(super) fn is_refused(&self) -> bool {
        self.is_refused
    }
}

/// Checks the writes of the last stage and passes them to the store.
struct Passed<'c, F> {
    check: &'c mut dyn FnMut(Keyspace, &[Write<'_>]) -> Result<()>,
    apply: F,
    /// Whether the store failed to apply a change.
    has_failed: bool,
}

impl<F: FnMut(Keyspace, Change<'_>) -> Result<()>> LastWrites for Passed<'_, F> {
    fn write(&mut self, keyspace: Keyspace, writes: &[Write<'_>]) -> Result<()> {
        (self.check)(keyspace, writes)?;
        let applied = (self.apply)(keyspace, Change::Writes(writes));
        self.has_failed |= applied.is_err();
        applied
    }
}
