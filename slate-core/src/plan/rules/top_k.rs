//! A sort below a limit holds no more rows than the limit asks for.

use crate::{
    Result,
    plan::{Context, Plan, RawPlan},
};

pub(super) fn apply(plan: &mut Plan, context: &Context<'_>) -> Result<()> {
    if context.query.limit.is_some() {
        plan.rewrite(|node| {
            if let RawPlan::Slice { input, window } = node
                && let RawPlan::Sort { limit, .. } = &mut **input
            {
                *limit = window.reach();
            }
        });
    }
    Ok(())
}
