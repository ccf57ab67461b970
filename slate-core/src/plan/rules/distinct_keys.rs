//! Reads the distinct values of a field from an index. If its entries come in the order of the values, the walk seeks from one
//! value to the next; otherwise every entry within the bounds is read.

use super::Outcome;
use crate::{
    Result,
    plan::{
        Context, IdPlan, Plan, RawPlan,
        keys_only::{field_of_values, lists_values},
    },
};

pub(super) fn apply(plan: &mut Plan, _: &Context<'_>) -> Result<Outcome> {
    let Plan::Distinct { input: RawPlan::Fetch { ids: IdPlan::Index(scan) }, path, values } = plan else {
        return Ok(Outcome::Unchanged);
    };
    if lists_values(&scan.index, &scan.bounds, &scan.checks, path, values) {
        *plan = Plan::DistinctKeys { scan: scan.take(), values: values.clone() };
    } else if let Some(field) = field_of_values(&scan.index, &scan.bounds, path) {
        *plan = Plan::DistinctEntries { scan: scan.take(), field, path: path.clone(), values: values.clone() };
    } else {
        return Ok(Outcome::Unchanged);
    }
    Ok(Outcome::Finished)
}
