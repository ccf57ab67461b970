//! Builds the documents of a projection, or of the fields that a pipeline reads, from index entries that contain all of them,
//! without fetching records. An entry of several fields also contains their order in the document.

use super::Outcome;
use crate::{
    Result,
    plan::{
        Context, IdPlan, Output, Plan, RawPlan,
        keys_only::{covered_fields, drawn},
    },
};

pub(super) fn apply(plan: &mut Plan, context: &Context<'_>) -> Result<Outcome> {
    let included = match &context.query.output {
        Output::Project { projection, .. } => projection.included(),
        Output::Fields(fields) => Some(&**fields),
        Output::Whole | Output::Key | Output::Count | Output::Distinct { .. } => None,
    };
    let (Some(included), Some(input)) = (included, plan.input_mut()) else { return Ok(Outcome::Unchanged) };
    if let Some((RawPlan::Fetch { ids: IdPlan::Index(scan) }, window)) = input.sliced_leaf_mut()
        && let Some(fields) = covered_fields(&scan.index, &scan.bounds, included)
    {
        let document = match &context.query.output {
            Output::Project { document, .. } => document.clone(),
            _ => drawn(included),
        };
        *plan = Plan::Covered { scan: scan.take(), fields, window, document };
        return Ok(Outcome::Finished);
    }
    Ok(Outcome::Unchanged)
}
