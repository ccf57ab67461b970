//! Which access paths return a query's result from keys alone, so that no record is fetched. The choice of the access path
//! prefers them; the rules `cover`, `count_keys` and `distinct_keys` then build the plan.
//!
//! An entry holds the values that the document has only where the index has met no array and has cut no value off.

use slate_query::{interval::IntervalSet, path::Path, projection::Projection};

use super::{Access, AccessPath, CoveredField, IndexBounds, Output, Query};
use crate::catalog::IndexInfo;

/// Whether an access path, after its rules, returns the query's result from keys alone.
pub(super) fn serves(access: &Access, query: &Query) -> bool {
    let is_exact = access.exact_for.are_all(query.filter.conjuncts().len());
    let is_sorted = || {
        query.order().is_none_or(|sort| access.path.ordered_by(sort, access.direction).fields == sort.fields().len())
    };
    is_exact
        && match (&query.output, &access.path) {
            (Output::Whole, _) => false,
            (Output::Project { projection, .. }, AccessPath::Index { index, .. }) => {
                covered_fields(index, projection).is_some() && is_sorted()
            }
            (Output::Count, path) => counts(path),
            (Output::Distinct { path, .. }, AccessPath::Index { index, bounds, checks }) => {
                lists_values(index, bounds, checks, path)
            }
            (Output::Project { .. } | Output::Distinct { .. }, _) => false,
        }
}

/// The fields of a projection, where the entries of an index hold them all.
pub(super) fn covered_fields(index: &IndexInfo, projection: &Projection) -> Option<Vec<CoveredField>> {
    if !holds_values(index) {
        return None;
    }
    let covered = |included: &Path| {
        if included.as_str() == "_id" {
            return Some(CoveredField::Id);
        }
        let field = index.pattern.fields().iter().position(|(path, _)| path == included)?;
        // A longer path shows its field within a document, which an entry does not hold.
        (included.parts().len() == 1).then_some(CoveredField::Indexed(field))
    };
    projection.included()?.iter().map(covered).collect()
}

/// Whether each record of an access path has one key to be counted.
fn counts(path: &AccessPath) -> bool {
    match path {
        AccessPath::Records { .. } => true,
        AccessPath::Index { index, .. } => !index.is_multikey(),
        // An `_id` of a filter may have no record.
        AccessPath::Points { .. } | AccessPath::Merge { .. } => false,
    }
}

/// Whether the entries of an index within the bounds hold the distinct values at `path`.
///
/// The field must be the index's last, and those before it bound to one value each: the entries of a value then lie in
/// the order of `_id`, and the first of them represents the value.
pub(super) fn lists_values(
    index: &IndexInfo,
    bounds: &IndexBounds,
    checks: &[(usize, IntervalSet)],
    path: &Path,
) -> bool {
    let Some(((last, _), before)) = index.pattern.fields().split_last() else { return false };
    last == path && holds_values(index) && checks.is_empty() && (0..before.len()).all(|field| bounds.is_point(field))
}

fn holds_values(index: &IndexInfo) -> bool {
    !index.is_multikey() && !index.truncated
}
