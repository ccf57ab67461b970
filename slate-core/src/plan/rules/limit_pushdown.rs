//! A limit that stands right above a fetch is known to the index scan: it then reads no entry, and the fetch no record,
//! that nobody will see. A filter between the two keeps it out: entries are not yet rows there.

use crate::{
    Result,
    plan::{Context, IdPlan, IndexScan, Plan, RawPlan},
};

pub(super) fn apply(plan: &mut Plan, context: &Context<'_>) -> Result<()> {
    if context.query.limit.is_some() {
        plan.rewrite(|node| {
            if let RawPlan::Slice { input, window } = node
                && let RawPlan::Fetch { ids: IdPlan::Index(IndexScan { limit, .. }) } = &mut **input
            {
                *limit = window.reach();
            }
        });
    }
    Ok(())
}
