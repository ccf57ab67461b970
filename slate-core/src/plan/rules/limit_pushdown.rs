//! A limit that stands right above a fetch is known to the index scan: it then reads no entry, and the fetch no record,
//! that nobody will see. A filter between the two keeps it out: entries are not yet rows there.

use crate::{
    Result,
    plan::{Context, IdPlan, IndexScan, Plan, RawPlan},
};

pub(super) fn apply(plan: Plan, context: &Context<'_>) -> Result<Plan> {
    if context.query.limit.is_none() {
        return Ok(plan);
    }
    Ok(plan.map_input(|input| {
        input.rewrite(&mut |node| match node {
            RawPlan::Slice { mut input, window } => {
                if let RawPlan::Fetch { ids: IdPlan::Index(IndexScan { limit, .. }) } = &mut *input {
                    *limit = window.reach();
                }
                RawPlan::Slice { input, window }
            }
            other => other,
        })
    }))
}
