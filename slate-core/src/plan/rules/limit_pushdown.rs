//! Moves a limit directly above a fetch into the index scan below it, so that entries and records beyond the limit are
//! not read. A filter in between prevents this, because not every entry then becomes a row.

use super::Outcome;
use crate::{
    Result,
    plan::{Context, IdPlan, IndexScan, Plan, RawPlan},
};

pub(super) fn apply(plan: &mut Plan, context: &Context<'_>) -> Result<Outcome> {
    let mut is_changed = false;
    if context.query.limit.is_some() {
        plan.rewrite(|node| {
            if let RawPlan::Slice { input, window } = node
                && let RawPlan::Fetch { ids: IdPlan::Index(IndexScan { limit, .. }) } = &mut **input
            {
                *limit = window.reach();
                is_changed = true;
            }
        });
    }
    Ok(Outcome::of_change(is_changed))
}
