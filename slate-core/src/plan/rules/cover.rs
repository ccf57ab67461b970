//! Builds the documents of a projection from index entries that contain all its fields, without fetching records. An
//! entry of several fields also contains their order in the document.

use super::Outcome;
use crate::{
    Result,
    plan::{Context, IdPlan, Plan, RawPlan, keys_only::covered_fields},
};

pub(super) fn apply(plan: &mut Plan, _: &Context<'_>) -> Result<Outcome> {
    let Plan::Project { input, projection, document, .. } = plan else { return Ok(Outcome::Unchanged) };
    if let Some((RawPlan::Fetch { ids: IdPlan::Index(scan) }, window)) = input.sliced_leaf_mut()
        && let Some(fields) = covered_fields(&scan.index, projection)
    {
        *plan = Plan::Covered { scan: scan.take(), fields, window, document: std::mem::take(document) };
        return Ok(Outcome::Finished);
    }
    Ok(Outcome::Unchanged)
}
