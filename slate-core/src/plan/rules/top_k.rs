//! Passes a limit to the sort below it, which then holds no more rows than the limit.

use super::Outcome;
use crate::{
    Result,
    plan::{Context, Plan, RawPlan},
};

pub(super) fn apply(plan: &mut Plan, context: &Context<'_>) -> Result<Outcome> {
    let mut is_changed = false;
    if context.query.limit.is_some() {
        plan.rewrite(|node| {
            if let RawPlan::Slice { input, window } = node
                && let RawPlan::Sort { limit, .. } = &mut **input
            {
                *limit = window.reach();
                is_changed = true;
            }
        });
    }
    Ok(Outcome::of_change(is_changed))
}
