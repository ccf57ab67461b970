//! What operators get from the update that applies them, and what they return.

use super::{Context, array_filter::ArrayFilters};
use crate::raw::Doc;

/// The result of applying operators to a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UpdateOutcome {
    /// The value is unchanged: nothing was written.
    Unchanged,
    /// The new value was written.
    Changed,
    /// The value is removed: nothing was written.
    Removed,
}

/// What operators may read besides the value that they change.
#[derive(Clone, Copy, Debug)]
pub(super) struct UpdateScope<'a> {
    pub(super) filters: &'a ArrayFilters,
    pub(super) context: &'a Context,
    /// The document before the update.
    pub(super) root: Doc<'a>,
}
