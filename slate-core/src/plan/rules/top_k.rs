//! Passes a limit to the sort below it, which then drops the rows that cannot be among the first.

use super::Outcome;
use crate::plan::{Query, candidate::Candidate};

pub(super) fn apply(candidate: &mut Candidate, query: &Query) -> Outcome {
    let Some(sorting) = &mut candidate.sorting else { return Outcome::Unchanged };
    sorting.limit = query.window.reach();
    Outcome::of_change(sorting.limit.is_some())
}
