//! Replaces the input of a query by `Eof`, which reads nothing, if the query returns no rows because its limit is 0 or
//! its filter matches no document.

use slate_query::filter::Node;

use super::Outcome;
use crate::{
    Result,
    plan::{Context, Force, Plan, RawPlan},
};

pub(super) fn apply(plan: &mut Plan, context: &Context<'_>) -> Result<Outcome> {
    let query = context.query;
    // `select_access` checks hints, and an invalid hint is an error with any filter.
    if query.hint.is_some() || query.force != Force::No {
        return Ok(Outcome::Unchanged);
    }
    let is_never = |node: &Node| node.branches().is_some_and(<[Node]>::is_empty);
    let reason = if query.limit == Some(0) {
        "the limit is 0"
    } else if query.filter.conjuncts().iter().any(is_never) {
        "no document matches the filter"
    } else {
        return Ok(Outcome::Unchanged);
    };
    if let Some(input) = plan.input_mut() {
        *input = RawPlan::Eof { reason };
    }
    Ok(Outcome::Finished)
}
