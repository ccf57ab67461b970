//! Replaces the input of a query by `Eof`, which reads nothing, if the query returns no rows because its limit is 0 or
//! its filter matches no document.

use slate_query::filter::Node;

use super::Outcome;
use crate::plan::{
    Force, Query,
    candidate::{Candidate, RowSource},
};

pub(super) fn apply(candidate: &mut Candidate, query: &Query) -> Outcome {
    let Some(reason) = reason(query) else { return Outcome::Unchanged };
    candidate.source = RowSource::Nothing { reason };
    Outcome::Finished
}

/// Returns why the query returns no rows; `None` if it may return some, or has a hint or a forced candidate.
pub(in crate::plan) fn reason(query: &Query) -> Option<&'static str> {
    // A hint is checked, and an invalid one is an error with any filter.
    if query.hint.is_some() || query.force != Force::No {
        return None;
    }
    let is_never = |node: &Node| node.branches().is_some_and(<[Node]>::is_empty);
    if query.window.limit == Some(0) {
        Some("the limit is 0")
    } else if query.filter.conjuncts().iter().any(is_never) {
        Some("no document matches the filter")
    } else {
        None
    }
}
