//! The different values of an index's field are read from the index, from one value straight to the next.
//!
//! The field must be the index's last, and those before it bound to one value each: the entries of a value then lie in
//! the order of `_id`, whose first represents them. On a multikey path bounds would let other elements of the same array
//! through, so there every record is read.

use slate_query::{interval::IntervalSet, path::Path};

use crate::{
    Result,
    catalog::IndexInfo,
    plan::{Context, IdPlan, IndexBounds, Plan, RawPlan},
};

pub(super) fn apply(plan: &mut Plan, _: &Context<'_>) -> Result<()> {
    if let Plan::Distinct { input: RawPlan::Fetch { ids: IdPlan::Index(scan) }, path, values } = plan
        && serves(&scan.index, &scan.bounds, &scan.checks, path)
    {
        *plan = Plan::DistinctKeys { scan: scan.take(), values: *values };
    }
    Ok(())
}

/// Whether an index's entries within the bounds give the different values at `path`.
pub(super) fn serves(index: &IndexInfo, bounds: &IndexBounds, checks: &[(usize, IntervalSet)], path: &Path) -> bool {
    let Some(((last, _), before)) = index.pattern.fields().split_last() else { return false };
    last == path
        && !index.is_multikey()
        && !index.truncated
        && checks.is_empty()
        && (0..before.len()).all(|field| bounds.is_point(field))
}
