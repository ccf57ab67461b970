//! The access paths that merge several others: intersections of two indexes, and the union of an index for each branch of
//! an `$or`.

use std::cmp::Reverse;

use slate_query::{
    filter::{Filter, Node, Validity},
    interval::IntervalSet,
    path::Path,
    pattern::Direction,
};

use super::{Terms, by_id, by_indexes};
use crate::{
    catalog::{CollectionInfo, IndexInfo},
    plan::{
        Combine, Conjuncts, Query,
        access::{Access, AccessPath},
    },
};

/// Maximum number of index paths that are combined in pairs.
const MAX_INTERSECTED: usize = 4;

/// Returns the access paths that merge several others.
pub(in crate::plan) fn merges<'a>(
    collection: &CollectionInfo,
    query: &Query,
    found: impl Iterator<Item = &'a Access>,
) -> Vec<Access> {
    let mut merged = intersections(found);
    merged.extend(unions(collection, query));
    merged
}

/// Returns pairs of index paths. A pair fetches only the records that both paths find.
fn intersections<'a>(found: impl Iterator<Item = &'a Access>) -> Vec<Access> {
    let forward = |access: &&Access| access.direction == Direction::Ascending && access.path.is_narrow_index();
    let narrow: Vec<&Access> = found.filter(forward).collect();
    // A path that finds every record of another one adds nothing to it. Of equal ones, the first remains.
    let adds = |(at, access): &(usize, &&Access)| {
        !narrow.iter().enumerate().any(|(other_at, other)| {
            other_at != *at
                && other.path.is_within(&access.path)
                && (other_at < *at || !access.path.is_within(&other.path))
        })
    };
    let narrow: Vec<&Access> =
        narrow.iter().enumerate().filter(adds).map(|(_, access)| *access).take(MAX_INTERSECTED).collect();
    let mut merged = Vec::new();
    for (at, left) in narrow.iter().enumerate() {
        for right in narrow.iter().skip(at + 1).filter(|right| !right.path.same_index(&left.path)) {
            let inputs = vec![left.path.clone(), right.path.clone()];
            let exact_for = left.exact_for.union(right.exact_for);
            merged.push(Access::of_path(AccessPath::Merge { how: Combine::Intersection, inputs }, exact_for));
        }
    }
    merged
}

/// Returns a union for each `$or` whose branches all have an index. The `$or` is checked again unless the index of each
/// branch decides it.
fn unions(collection: &CollectionInfo, query: &Query) -> Vec<Access> {
    (0..query.filter.conjuncts().len()).filter_map(|place| union(collection, query, place)).collect()
}

/// Returns the union of a path for each branch of the conjunct at `place`. The other conjuncts hold in every branch and limit
/// its path, too: `{a: 1, $or: [{b: 2}, {c: 3}]}` reads indexes on `{a, b}` and `{a, c}`.
fn union(collection: &CollectionInfo, query: &Query, place: usize) -> Option<Access> {
    let conjuncts = query.filter.conjuncts();
    let node = conjuncts.get(place)?;
    let others = || conjuncts.iter().enumerate().filter(|(at, _)| *at != place);
    let mut inputs: Vec<AccessPath> = Vec::new();
    // The other conjuncts for which the paths so far are exact.
    let mut exact_others: Vec<usize> = others().map(|(at, _)| at).collect();
    // Expressions are evaluated in any case, because they can fail.
    let mut is_exact = !node.computes();
    for branch in node.branches()? {
        let own = branch.conjuncts();
        let filter = Filter::of_conjuncts(own.iter().chain(others().map(|(_, node)| node)).cloned().collect());
        if filter.conjuncts().len() != own.len() + conjuncts.len() - 1 {
            return None;
        }
        let found = by_branch(collection, branch, &filter)?;
        is_exact &= (0..own.len()).all(|at| found.exact_for.contains(at));
        exact_others.retain(|place_of_other| {
            others()
                .position(|(at, _)| at == *place_of_other)
                .is_some_and(|at| found.exact_for.contains(own.len() + at))
        });
        // A path whose records another one finds as well adds nothing to the union.
        if inputs.iter().any(|other| found.path.is_within(other)) {
            continue;
        }
        inputs.retain(|other| !other.is_within(&found.path));
        inputs.push(found.path);
    }
    let exact = exact_others.into_iter().chain(is_exact.then_some(place));
    let exact_for = exact.fold(Conjuncts::default(), |all, at| all.union(Conjuncts::one(at)));
    // One path that finds the records of every branch is a candidate without a merge: every branch limits its fields.
    (inputs.len() > 1).then(|| Access::of_path(AccessPath::Merge { how: Combine::Union, inputs }, exact_for))
}

/// Returns the path by `_id` or one index that finds the documents of a branch. `filter` is the branch with the conditions
/// beside the `$or`; the path limits a field of the branch itself.
fn by_branch(collection: &CollectionInfo, branch: &Node, filter: &Filter) -> Option<Access> {
    let own = Terms::of(branch.conjuncts(), collection, None);
    let terms = Terms::of(filter.conjuncts(), collection, None);
    let mut indexed = Vec::new();
    by_indexes(collection, filter, &terms, &mut indexed);
    indexed.retain(|access| {
        // Without other conjuncts, every path limits the branch.
        let limits_branch = || access.path.limits().any(|(path, _)| own.on(path).next().is_some());
        access.path.is_narrow_index() && (filter.conjuncts().len() == branch.conjuncts().len() || limits_branch())
    });
    let by_id = by_id(&own).and_then(|_| by_id(&terms));
    let by_id = by_id.filter(|access| matches!(access.path, AccessPath::Points { .. }));
    by_id.into_iter().chain(indexed).min_by_key(points_first)
}

/// Orders the paths of one branch: the path with the most fields bound to points comes first, then that with the most
/// limits.
fn points_first(access: &Access) -> Reverse<(usize, usize)> {
    let points = match &access.path {
        AccessPath::Points { .. } => usize::MAX,
        AccessPath::Index { bounds, .. } => bounds.fields().iter().filter(|set| set.is_points()).count(),
        AccessPath::Records { .. } | AccessPath::Merge { .. } => 0,
    };
    Reverse((points, access.path.limits().count()))
}

impl AccessPath {
    /// Returns the fields that an index path limits, each with its allowed values. The path field of a wildcard index is
    /// among them only if no other field is: a value at a path implies the path.
    pub(in crate::plan) fn limits(&self) -> impl Iterator<Item = (&Path, &IntervalSet)> {
        let index = match self {
            Self::Index { index, bounds, checks } => Some((index, bounds, checks)),
            Self::Records { .. } | Self::Points { .. } | Self::Merge { .. } => None,
        };
        index.into_iter().flat_map(|(index, bounds, checks)| {
            let is_implied = index.is_part() && (bounds.used() > 1 || !checks.is_empty());
            let bound = bounds.fields().iter().enumerate().skip(usize::from(is_implied));
            let checked = checks.values.iter().map(|(field, set)| (*field, set));
            let path = |field: usize| index.pattern.fields().get(field).map(|(path, _)| path);
            bound.chain(checked).filter_map(move |(field, set)| Some((path(field)?, set)))
        })
    }

    /// Returns whether the path finds only records that `other` finds too, as far as their limits show it.
    fn is_within(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Index { index, checks, .. }, Self::Index { index: other_index, checks: other_checks, .. }) => {
                let has_entries = other_index.partial.as_ref().is_none_or(|condition| {
                    index.partial.as_ref().is_some_and(|held| held.filter.implies(&condition.filter))
                });
                // What the filter of the other path rejects is not among its limits.
                let passes = other_checks.filter.as_ref().is_none_or(|condition| {
                    checks.filter.as_ref().is_some_and(|held| held.drawn.implies(&condition.drawn))
                });
                let is_held = |path: &Path, allowed: &IntervalSet| {
                    self.limits().any(|(limited, held)| limited == path && held.intersect(allowed) == *held)
                        || (other_index.collation.is_none() && index.holds_only(path, allowed))
                };
                has_entries && passes && other.limits().all(|(path, allowed)| is_held(path, allowed))
            }
            (Self::Points { ids }, Self::Points { ids: others }) => ids.intersect(others) == *ids,
            _ => false,
        }
    }

    fn same_index(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Index { index, .. }, Self::Index { index: other, .. }) => index.keyspace == other.keyspace,
            _ => false,
        }
    }
}

impl IndexInfo {
    /// Returns whether each document of a partial index has a value within `allowed` at `path`.
    fn holds_only(&self, path: &Path, allowed: &IntervalSet) -> bool {
        let mut holds = false;
        for node in self.partial.iter().flat_map(|partial| partial.filter.conjuncts()) {
            node.each_term(None, &mut |term| {
                holds |= term.validity == Validity::Always
                    && term.path == *path
                    && term.intervals.intersect(allowed) == term.intervals;
            });
        }
        holds
    }
}
