//! Drops the filter if the access path is exact for each of its conjuncts. Otherwise the other conjuncts are evaluated on records.

use super::Outcome;
use crate::plan::{Query, candidate::Candidate};

pub(super) fn apply(candidate: &mut Candidate, query: &Query) -> Outcome {
    candidate.is_filtered = !candidate.access.exact_for.are_all(query.filter.conjuncts().len());
    Outcome::of_change(!candidate.access.is_full_scan())
}
