//! The contract of update operators.

use std::fmt;

use crate::{
    Code, Error, Result,
    raw::{Value, Writer},
    update::scope::{UpdateOutcome, UpdateScope},
};

/// An update operator with its argument.
pub(in crate::update) trait Operator: fmt::Debug + Send + Sync {
    /// Writes the new value under `name` if it changes; writes nothing if it is unchanged or removed.
    fn update(&self, name: &[u8], value: Value<'_>, scope: &UpdateScope<'_>, out: &mut Writer)
    -> Result<UpdateOutcome>;

    /// Writes a missing field, if the operator creates one.
    fn create(&self, _name: &[u8], _scope: &UpdateScope<'_>, _out: &mut Writer) -> Result<UpdateOutcome> {
        Ok(UpdateOutcome::Unchanged)
    }

    /// Fails if the operator does not allow a value on its path that cannot have fields.
    fn blocked(&self, _scope: &UpdateScope<'_>) -> Result<()> {
        Err(Error::new(Code::PATH_NOT_VIABLE, "the path goes through a value that cannot hold such a field"))
    }

    /// Returns whether the operator creates missing fields.
    fn creates(&self) -> Creates {
        Creates::Fields
    }

    /// Returns an upper bound of the nesting depth of the values that the operator writes: 0 for scalars.
    fn depth(&self) -> usize {
        0
    }
}

/// Whether an operator creates missing fields. One that creates none may also change a field whose name may not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::update) enum Creates {
    Fields,
    Nothing,
}

/// Returns the nesting depth of a value: 0 for a scalar.
pub(super) fn depth(value: Value<'_>) -> usize {
    let inner = value.as_container().into_iter().flat_map(|container| container.values()).map(depth).max();
    value.as_container().map_or(0, |_| 1 + inner.unwrap_or(0))
}
