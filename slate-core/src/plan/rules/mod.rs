//! The rules, in the order in which they are applied.
//!
//! To add one: write a file with a function `apply` and a doc comment that says what the rule rewrites and why the result
//! stays the same; add its `mod` line and its line in [`ALL`], where the comment says why it stands there. Explain lists
//! the rules that changed a plan.

mod count_keys;
mod cover;
mod distinct_keys;
mod limit_pushdown;
mod no_rows;
mod rule;
mod select_access;
mod sort_by_index;
mod top_k;

pub(crate) use rule::FiredRules;
pub(super) use rule::{Outcome, Rule};

/// Every rule.
pub(super) const ALL: &[Rule] = &[
    // First: without rows there is nothing to choose, and the rules after it probe the store.
    Rule { name: "no_rows", apply: no_rows::apply },
    // Before the rest, which depend on the order of the leaf's rows and on the filter that is left.
    Rule { name: "select_access", apply: select_access::apply },
    // Before the limit rules: it removes sorts.
    Rule { name: "sort_by_index", apply: sort_by_index::apply },
    // After it is known which sorts are left.
    Rule { name: "top_k", apply: top_k::apply },
    // After the filters and sorts that could stand between the limit and the fetch are gone.
    Rule { name: "limit_pushdown", apply: limit_pushdown::apply },
    // Last: these replace the whole plan by one that reads no record. Each is about another output, so that their order
    // does not matter.
    Rule { name: "cover", apply: cover::apply },
    Rule { name: "count_keys", apply: count_keys::apply },
    Rule { name: "distinct_keys", apply: distinct_keys::apply },
];
