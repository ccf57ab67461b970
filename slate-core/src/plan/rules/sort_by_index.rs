//! Removes a sort if the access path already provides its order. If the path provides only the leading fields, the sort
//! remains and sorts one group of rows that are equal in them at a time, so that a limit ends it early.

use super::Outcome;
use crate::{
    Result,
    plan::{Context, Plan, RawPlan, Ties, leaf_order},
};

pub(super) fn apply(plan: &mut Plan, context: &Context<'_>) -> Result<Outcome> {
    let mut is_changed = false;
    if context.query.order().is_some() {
        plan.rewrite(|node| {
            let RawPlan::Sort { input, sort, presorted, .. } = node else { return };
            let given = leaf_order(input.leaf(), sort);
            let ties = context.query.ties == Ties::Any || given.ties_by_id;
            is_changed |= given.fields > 0;
            if given.fields == sort.fields().len() && ties {
                *node = input.take();
            } else {
                *presorted = given.fields.min(sort.fields().len());
            }
        });
    }
    Ok(Outcome::of_change(is_changed))
}
