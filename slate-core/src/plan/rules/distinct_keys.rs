//! Reads the distinct values of an index's field from the index, seeking from one value to the next. A multikey index is
//! not read this way: its bounds would let other elements of the same arrays through.

use super::Outcome;
use crate::{
    Result,
    plan::{Context, IdPlan, Plan, RawPlan, keys_only::lists_values},
};

pub(super) fn apply(plan: &mut Plan, _: &Context<'_>) -> Result<Outcome> {
    if let Plan::Distinct { input: RawPlan::Fetch { ids: IdPlan::Index(scan) }, path, values } = plan
        && lists_values(&scan.index, &scan.bounds, &scan.checks, path)
    {
        *plan = Plan::DistinctKeys { scan: scan.take(), values: *values };
        return Ok(Outcome::Finished);
    }
    Ok(Outcome::Unchanged)
}
