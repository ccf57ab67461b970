//! Passes a limit to the sort below it, which then holds no more rows than the limit.

use super::Outcome;
use crate::plan::{Query, candidate::Candidate};

pub(super) fn apply(candidate: &mut Candidate, query: &Query) -> Outcome {
    let Some(sorting) = &mut candidate.sorting else { return Outcome::Unchanged };
    sorting.limit = query.window.reach();
    Outcome::of_change(sorting.limit.is_some())
}
