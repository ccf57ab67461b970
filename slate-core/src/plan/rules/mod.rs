//! The rules, in the order in which they are applied to each candidate. Costs are computed after the rules, so a rule can change
//! the choice.
//!
//! To add a rule, write a file with a function `apply` and a doc comment that states what the rule changes and why the
//! result does not change. Add its `mod` line and its line in [`ALL`], with a comment that gives the reason for its
//! position. Explain lists the rules that changed a plan.

mod count_keys;
mod cover;
mod distinct_keys;
mod exact_bounds;
mod limit_pushdown;
mod no_rows;
mod rule;
mod sort_by_index;
mod top_k;

pub(in crate::plan) use no_rows::reason as no_rows;
pub(crate) use rule::FiredRules;
pub(super) use rule::{Outcome, Rule};

pub(super) const ALL: &[Rule] = &[
    // First, because without rows nothing else matters.
    Rule { name: "no_rows", apply: no_rows::apply },
    // Before the others, which depend on the remaining filter.
    Rule { name: "select_access", apply: exact_bounds::apply },
    // Before the limit rules: it removes sorts.
    Rule { name: "sort_by_index", apply: sort_by_index::apply },
    // After `sort_by_index`, which determines the remaining sorts.
    Rule { name: "top_k", apply: top_k::apply },
    // After the rules that remove filters and sorts between the limit and the fetch.
    Rule { name: "limit_pushdown", apply: limit_pushdown::apply },
    // Last, because these rules replace the whole plan by one that reads no records. Each applies to a different output,
    // so their order does not matter.
    Rule { name: "cover", apply: cover::apply },
    Rule { name: "count_keys", apply: count_keys::apply },
    Rule { name: "distinct_keys", apply: distinct_keys::apply },
];
