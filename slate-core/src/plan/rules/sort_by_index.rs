//! Removes a sort that the access path gives already. Where it gives the leading fields only, the sort is kept and
//! told so: it then holds one group of rows equal in those fields at a time, and a limit ends it early.

use crate::{
    Result,
    plan::{Context, Plan, RawPlan, Ties, leaf_order},
};

pub(super) fn apply(plan: Plan, context: &Context<'_>) -> Result<Plan> {
    if context.query.order().is_none() {
        return Ok(plan);
    }
    Ok(plan.map_input(|input| {
        input.rewrite(&mut |node| match node {
            RawPlan::Sort { input, sort, limit, .. } => {
                let ordered = leaf_order(input.leaf(), &sort);
                let ties = context.query.ties == Ties::Any || ordered.ties_by_id;
                if ordered.fields == sort.fields().len() && ties {
                    *input
                } else {
                    let presorted = ordered.fields.min(sort.fields().len());
                    RawPlan::Sort { input, sort, limit, presorted }
                }
            }
            other => other,
        })
    }))
}
