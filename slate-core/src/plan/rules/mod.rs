//! The rules, in the order in which they are applied.

mod count_keys;
mod cover;
mod distinct_keys;
mod limit_pushdown;
mod select_access;
mod sort_by_index;
mod top_k;

use super::{Access, AccessPath, Context, Output, Plan, Query};
use crate::Result;

/// A rewriting of plans that keeps their answer.
pub(crate) type Rule = fn(&mut Plan, &Context<'_>) -> Result<()>;

/// Each rule stands where it does for the reason given.
pub(crate) const ALL: &[Rule] = &[
    // First: every other rule asks how the leaf is ordered and what it proves.
    select_access::apply,
    // After the leaf is known, before a limit can be moved below a sort that this rule may remove.
    sort_by_index::apply,
    // After it is known which sorts remain.
    top_k::apply,
    // After the sorts: a limit may pass what the rules before have removed.
    limit_pushdown::apply,
    // The next three replace the whole plan by one that reads no record: after every rule that could still have put a
    // filter or a sort in between, or taken one away. Each is about another output, so their order among them is free.
    cover::apply,
    count_keys::apply,
    distinct_keys::apply,
];

/// Whether an access path, once its rules have been applied, answers the query from keys alone. Selection asks, so that
/// it counts no record there.
pub(super) fn reads_keys_alone(access: &Access, query: &Query) -> bool {
    let proven = access.proven.are_all(query.filter.conjuncts().len());
    let ordered = || {
        query.order().is_none_or(|sort| access.path.ordered_by(sort, access.direction).fields == sort.fields().len())
    };
    proven
        && match (&query.output, &access.path) {
            (Output::Whole, _) => false,
            (Output::Project { projection, .. }, AccessPath::Index { index, .. }) => {
                cover::serves(index, projection) && ordered()
            }
            (Output::Count, path) => count_keys::serves(path),
            (Output::Distinct { path, .. }, AccessPath::Index { index, bounds, checks }) => {
                distinct_keys::serves(index, bounds, checks, path)
            }
            (Output::Project { .. } | Output::Distinct { .. }, _) => false,
        }
}
