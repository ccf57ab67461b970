//! Removes a sort if the access path already provides its order. If the path provides only the leading fields, the sort
//! remains and sorts one group of rows that are equal in them at a time, so that a limit ends it early.

use super::Outcome;
use crate::plan::{Query, Ties, candidate::Candidate};

pub(super) fn apply(candidate: &mut Candidate, query: &Query) -> Outcome {
    let (Some(sorting), Some(sort)) = (&mut candidate.sorting, &query.sort) else { return Outcome::Unchanged };
    let given = candidate.access.path.ordered_by(sort, candidate.access.direction);
    sorting.presorted = given.fields;
    if given.fields == sort.fields().len() && (query.ties == Ties::Any || given.ties_by_id) {
        candidate.sorting = None;
    }
    Outcome::of_change(given.fields > 0)
}
