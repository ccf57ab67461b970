//! Builds the documents of a projection, or of the fields that a pipeline reads, from index entries that contain all of them,
//! without fetching records. An entry of several fields also contains their order in the document.

use super::Outcome;
use crate::plan::{
    AccessPath, Query,
    candidate::{Candidate, RowSource},
    keys_only::covered_fields,
};

pub(super) fn apply(candidate: &mut Candidate, query: &Query) -> Outcome {
    if let Some(included) = query.output.included()
        && candidate.reads_only()
        && let AccessPath::Index { index, bounds, .. } = &candidate.access.path
        && let Some(fields) = covered_fields(index, bounds, included)
    {
        candidate.source = RowSource::Covered(fields);
        return Outcome::Finished;
    }
    Outcome::Unchanged
}
