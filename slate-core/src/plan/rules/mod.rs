//! The rules, in the order in which they are applied.

mod limit_pushdown;
mod select_access;
mod sort_by_index;
mod top_k;

use super::{Context, Plan};
use crate::Result;

/// A rewriting of plans that keeps their answer.
pub(crate) type Rule = fn(Plan, &Context<'_>) -> Result<Plan>;

/// Each rule stands where it does for the reason given.
pub(crate) const ALL: &[Rule] = &[
    // First: every other rule asks how the leaf is ordered and what it proves.
    select_access::apply,
    // After the leaf is known, before a limit can be moved below a sort that this rule may remove.
    sort_by_index::apply,
    // After it is known which sorts remain.
    top_k::apply,
    // Last: a limit may pass what the rules before have removed.
    limit_pushdown::apply,
];
