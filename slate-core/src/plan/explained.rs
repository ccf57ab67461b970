use std::sync::Arc;

use super::{Analysis, Plan};

/// A plan, the rules that changed it, the number of candidates for its access path, and the measures of its execution,
/// if it was executed.
pub(crate) struct Explained {
    /// The collection that is read. For a view it is the collection that the view reads.
    pub(crate) collection: Arc<str>,
    pub(crate) plan: Plan,
    pub(crate) rules: Vec<&'static str>,
    pub(crate) candidates: usize,
    pub(crate) analysis: Option<Analysis>,
}
