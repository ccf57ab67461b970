//! A sort below a limit holds no more rows than the limit asks for.

use crate::{
    Result,
    plan::{Context, Plan, RawPlan},
};

pub(super) fn apply(plan: Plan, context: &Context<'_>) -> Result<Plan> {
    if context.query.limit.is_none() {
        return Ok(plan);
    }
    Ok(plan.map_input(|input| {
        input.rewrite(&mut |node| match node {
            RawPlan::Slice { mut input, window } => {
                if let RawPlan::Sort { limit, .. } = &mut *input {
                    *limit = window.reach();
                }
                RawPlan::Slice { input, window }
            }
            other => other,
        })
    }))
}
