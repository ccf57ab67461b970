//! Moves a limit directly above a fetch into the index scan below it, so that entries and records beyond the limit are
//! not read. A filter in between prevents this, because not every entry then becomes a row.

use super::Outcome;
use crate::plan::{AccessPath, Query, candidate::Candidate};

pub(super) fn apply(candidate: &mut Candidate, query: &Query) -> Outcome {
    if candidate.reads_only() && matches!(candidate.access.path, AccessPath::Index { .. }) {
        candidate.scan_limit = query.window.reach();
    }
    Outcome::of_change(candidate.scan_limit.is_some())
}
