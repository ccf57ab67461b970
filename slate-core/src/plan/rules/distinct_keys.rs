//! Reads the distinct values of a field from an index, seeking from one value to the next. Skips fields
//! with arrays: the other elements of the documents that the bounds select are distinct values, too.

use super::Outcome;
use crate::{
    Result,
    plan::{Context, IdPlan, Plan, RawPlan, keys_only::lists_values},
};

pub(super) fn apply(plan: &mut Plan, _: &Context<'_>) -> Result<Outcome> {
    if let Plan::Distinct { input: RawPlan::Fetch { ids: IdPlan::Index(scan) }, path, values } = plan
        && lists_values(&scan.index, &scan.bounds, &scan.checks, path, values)
    {
        *plan = Plan::DistinctKeys { scan: scan.take(), values: values.clone() };
        return Ok(Outcome::Finished);
    }
    Ok(Outcome::Unchanged)
}
