//! Counts keys instead of records if no filter remains. Where a record may have several entries, in a multikey index or in a
//! merge, each record is counted once by its key.

use slate_query::pattern::Direction;

use super::Outcome;
use crate::plan::{
    Output, Query,
    candidate::{Candidate, RowSource},
};

pub(super) fn apply(candidate: &mut Candidate, query: &Query) -> Outcome {
    let is_count = matches!(query.output, Output::Count);
    // Points may name missing records, so they cannot be counted by key.
    if !is_count || !candidate.reads_only() || !candidate.access.path.is_of_keys() {
        return Outcome::Unchanged;
    }
    // The keys are counted in any order, and the window is applied to their number.
    candidate.access.direction = Direction::Ascending;
    candidate.scan_limit = None;
    candidate.source = RowSource::CountedKeys;
    Outcome::Finished
}
