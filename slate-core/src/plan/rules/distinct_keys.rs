//! Reads the distinct values of a field from an index. If its entries come in the order of the values, the walk seeks from one
//! value to the next; otherwise every entry within the bounds is read.

use super::Outcome;
use crate::plan::{
    AccessPath, Output, Query,
    candidate::{Candidate, RowSource},
    keys_only::{field_of_values, lists_values},
};

pub(super) fn apply(candidate: &mut Candidate, query: &Query) -> Outcome {
    let Output::Distinct { path, values } = &query.output else { return Outcome::Unchanged };
    let AccessPath::Index { index, bounds, checks } = &candidate.access.path else { return Outcome::Unchanged };
    if !candidate.reads_only() || !query.window.is_all() {
        return Outcome::Unchanged;
    }
    if lists_values(index, bounds, checks, path, values) {
        candidate.source = RowSource::DistinctKeys;
    } else if let Some(field) = field_of_values(index, bounds, path) {
        candidate.source = RowSource::DistinctEntries(field);
    } else {
        return Outcome::Unchanged;
    }
    Outcome::Finished
}
