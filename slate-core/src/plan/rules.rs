//! The rules, in the order in which they are applied to each candidate. Costs are computed from what the rules have made of it, so
//! a rule can change the choice.
//!
//! To add a rule, write a function with a doc comment that states what the rule changes and why the result does not
//! change. Add its line in [`ALL`], with a comment that gives the reason for its position. Explain lists the rules that changed a plan.

use slate_query::{filter::Node, pattern::Direction};

use super::{
    AccessPath, Force, Output, Query, Ties,
    candidate::{Candidate, RowSource},
    keys_only::{covered_fields, field_of_values, lists_values},
};

/// Every rule.
pub(super) const ALL: &[Rule] = &[
    // First, because without rows nothing else matters.
    Rule { name: "no_rows", apply: no_rows },
    // Before the others, which depend on the remaining filter.
    Rule { name: "select_access", apply: exact_bounds },
    // Before the limit rules: it removes sorts.
    Rule { name: "sort_by_index", apply: sort_by_index },
    // After `sort_by_index`, which determines the remaining sorts.
    Rule { name: "top_k", apply: top_k },
    // After the rules that remove filters and sorts between the limit and the fetch.
    Rule { name: "limit_pushdown", apply: limit_pushdown },
    // Last, because these rules replace the whole plan by one that reads no records. Each applies to a different output,
    // so their order does not matter.
    Rule { name: "cover", apply: cover },
    Rule { name: "count_keys", apply: count_keys },
    Rule { name: "distinct_keys", apply: distinct_keys },
];

/// A change of a candidate that does not change the result of its plan.
pub(crate) struct Rule {
    pub(crate) name: &'static str,
    pub(crate) apply: fn(&mut Candidate, &Query) -> Outcome,
}

/// The effect of a rule on a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Unchanged,
    Changed,
    /// The plan is complete: later rules are not applied.
    Finished,
}

impl Outcome {
    pub(super) fn of_change(is_changed: bool) -> Self {
        if is_changed { Self::Changed } else { Self::Unchanged }
    }
}

/// The rules that changed a plan: a bit for each of [`ALL`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FiredRules(u16);

const _: () = assert!(ALL.len() <= u16::BITS as usize, "each rule has a bit");

impl FiredRules {
    pub(crate) fn add(&mut self, number: usize) {
        self.0 |= 1 << number;
    }

    pub(crate) fn names(self) -> impl Iterator<Item = &'static str> {
        ALL.iter().enumerate().filter(move |(number, _)| self.0 & 1 << number != 0).map(|(_, rule)| rule.name)
    }
}

/// Replaces the input of a query by `Eof`, which reads nothing, if the query returns no rows because its limit is 0 or
/// its filter matches no document.
fn no_rows(candidate: &mut Candidate, query: &Query) -> Outcome {
    let Some(reason) = reason_without_rows(query) else { return Outcome::Unchanged };
    candidate.source = RowSource::Nothing { reason };
    Outcome::Finished
}

/// Returns why the query returns no rows; `None` if it may return some.
pub(super) fn reason_without_rows(query: &Query) -> Option<&'static str> {
    // A hint is checked, and an invalid one is an error with any filter.
    if query.hint.is_some() || query.force != Force::No {
        return None;
    }
    let is_never = |node: &Node| node.branches().is_some_and(<[Node]>::is_empty);
    if query.limit == Some(0) {
        Some("the limit is 0")
    } else if query.filter.conjuncts().iter().any(is_never) {
        Some("no document matches the filter")
    } else {
        None
    }
}

/// Drops the filter if the bounds of the access path are exact for each of its conjuncts. What remains is evaluated on records.
fn exact_bounds(candidate: &mut Candidate, query: &Query) -> Outcome {
    candidate.is_filtered = !candidate.access.exact_for.are_all(query.filter.conjuncts().len());
    Outcome::of_change(!candidate.access.is_full_scan())
}

/// Removes a sort if the access path already provides its order. If the path provides only the leading fields, the sort
/// remains and sorts one group of rows that are equal in them at a time, so that a limit ends it early.
fn sort_by_index(candidate: &mut Candidate, query: &Query) -> Outcome {
    let (Some(sorting), Some(sort)) = (&mut candidate.sorting, query.order()) else { return Outcome::Unchanged };
    let given = candidate.access.path.ordered_by(sort, candidate.access.direction);
    sorting.presorted = given.fields;
    if given.fields == sort.fields().len() && (query.ties == Ties::Any || given.ties_by_id) {
        candidate.sorting = None;
    }
    Outcome::of_change(given.fields > 0)
}

/// Passes a limit to the sort below it, which then holds no more rows than the limit.
fn top_k(candidate: &mut Candidate, query: &Query) -> Outcome {
    let Some(sorting) = &mut candidate.sorting else { return Outcome::Unchanged };
    sorting.limit = query.window().reach();
    Outcome::of_change(sorting.limit.is_some())
}

/// Moves a limit directly above a fetch into the index scan below it, so that entries and records beyond the limit are
/// not read. A filter in between prevents this, because not every entry then becomes a row.
fn limit_pushdown(candidate: &mut Candidate, query: &Query) -> Outcome {
    if candidate.reads_only() && matches!(candidate.access.path, AccessPath::Index { .. }) {
        candidate.scan_limit = query.window().reach();
    }
    Outcome::of_change(candidate.scan_limit.is_some())
}

/// Builds the documents of a projection, or of the fields that a pipeline reads, from index entries that contain all of them,
/// without fetching records. An entry of several fields also contains their order in the document.
fn cover(candidate: &mut Candidate, query: &Query) -> Outcome {
    if let Some(included) = query.output.included()
        && candidate.reads_only()
        && let AccessPath::Index { index, bounds, .. } = &candidate.access.path
        && let Some(fields) = covered_fields(index, bounds, included)
    {
        candidate.source = RowSource::Covered(fields);
        return Outcome::Finished;
    }
    Outcome::Unchanged
}

/// Counts keys instead of records if no filter remains. Where a record may have several entries, in a multikey index or in a
/// merge, each record is counted once by its key.
fn count_keys(candidate: &mut Candidate, query: &Query) -> Outcome {
    let is_count = matches!(query.output, Output::Count);
    // An `_id` in a filter may have no record.
    if !is_count || !candidate.reads_only() || !candidate.access.path.is_of_keys() {
        return Outcome::Unchanged;
    }
    // The keys are counted where they are, in any order, and their number is cut to the window.
    candidate.access.direction = Direction::Ascending;
    candidate.scan_limit = None;
    candidate.source = RowSource::CountedKeys;
    Outcome::Finished
}

/// Reads the distinct values of a field from an index. If its entries come in the order of the values, the walk seeks from one
/// value to the next; otherwise every entry within the bounds is read.
fn distinct_keys(candidate: &mut Candidate, query: &Query) -> Outcome {
    let Output::Distinct { path, values } = &query.output else { return Outcome::Unchanged };
    let AccessPath::Index { index, bounds, checks } = &candidate.access.path else { return Outcome::Unchanged };
    if !candidate.reads_only() || !query.window().is_all() {
        return Outcome::Unchanged;
    }
    if lists_values(index, bounds, checks, path, values) {
        candidate.source = RowSource::DistinctKeys;
    } else if let Some(field) = field_of_values(index, bounds, path) {
        candidate.source = RowSource::DistinctEntries(field);
    } else {
        return Outcome::Unchanged;
    }
    Outcome::Finished
}
