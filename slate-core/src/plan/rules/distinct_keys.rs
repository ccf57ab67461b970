//! The different values of an index's field are read from the index, from one value straight to the next.
//!
//! The field must be the index's last, and those before it bound to one value each: the entries of a value then lie in
//! the order of `_id`, whose first represents them. On a multikey path bounds would let other elements of the same array
//! through, so there every record is read.

use slate_query::path::Path;

use crate::{
    Result,
    plan::{AccessPath, Context, IdPlan, Plan, RawPlan},
};

pub(super) fn apply(plan: Plan, _: &Context<'_>) -> Result<Plan> {
    let Plan::Distinct { input, path, values } = plan else { return Ok(plan) };
    if let RawPlan::Fetch { ids: IdPlan::Index(scan) } = &input {
        let access =
            AccessPath::Index { index: scan.index.clone(), bounds: scan.bounds.clone(), checks: scan.checks.clone() };
        if serves(&access, &path) {
            return Ok(Plan::DistinctKeys { scan: scan.clone(), values });
        }
    }
    Ok(Plan::Distinct { input, path, values })
}

/// Whether an access path's entries give the different values at `path`.
pub(super) fn serves(access: &AccessPath, path: &Path) -> bool {
    let AccessPath::Index { index, bounds, checks } = access else { return false };
    let Some(((last, _), before)) = index.pattern.fields().split_last() else { return false };
    last == path
        && !index.is_multikey()
        && !index.truncated
        && checks.is_empty()
        && (0..before.len()).all(|field| bounds.is_point(field))
}
