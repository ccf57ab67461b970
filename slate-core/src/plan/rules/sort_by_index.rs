//! Removes a sort that the access path gives already. Where it gives the leading fields only, the sort is kept and
//! told so: it then holds one group of rows equal in those fields at a time, and a limit ends it early.

use crate::{
    Result,
    plan::{Context, Plan, RawPlan, Ties, leaf_order},
};

pub(super) fn apply(plan: &mut Plan, context: &Context<'_>) -> Result<()> {
    if context.query.order().is_some() {
        plan.rewrite(|node| {
            let RawPlan::Sort { input, sort, presorted, .. } = node else { return };
            let ordered = leaf_order(input.leaf(), sort);
            let ties = context.query.ties == Ties::Any || ordered.ties_by_id;
            if ordered.fields == sort.fields().len() && ties {
                *node = input.take();
            } else {
                *presorted = ordered.fields.min(sort.fields().len());
            }
        });
    }
    Ok(())
}
