//! The access paths that merge several others: intersections of two indexes, and the union of an index for each branch of
//! an `$or`.

use std::cmp::Reverse;

use slate_query::{
    filter::{Filter, Node, Validity},
    interval::IntervalSet,
    path::Path,
    pattern::Direction,
    wildcard::{PATH_FIELD, WildcardPattern},
    work,
};

use super::{Terms, by_id, by_indexes, excludes_null, has_present_field};
use crate::{
    catalog::{CollectionInfo, IndexInfo},
    plan::{
        Combine, Conjuncts, Query,
        access::{Access, AccessPath},
    },
};

/// Maximum number of index paths that are combined in pairs.
const MAX_INTERSECTED: usize = 4;

/// Maximum number of inputs of a union that are compared with a further one. Beyond it an input may find records that others find
/// as well.
const MAX_COMPARED: usize = 64;

/// Maximum number of conjuncts beside an `$or` that limit the paths of its branches. Paths are known to be exact for no more; see
/// [`Conjuncts`].
const MAX_BESIDE: usize = 64;

/// Maximum number of branches of an `$or` that limits the paths of another `$or`: it is planned again with each branch of the other.
const MAX_BRANCHES_BESIDE: usize = 16;

/// Maximum number of `$or`s whose unions are candidates.
const MAX_UNIONS: usize = 16;

/// The steps of choosing the index of a branch; see [`work`].
const STEPS_PER_BRANCH: usize = 256;

/// Returns the access paths that merge several others.
pub(in crate::plan) fn merges<'a>(
    collection: &CollectionInfo,
    query: &Query,
    found: impl Iterator<Item = &'a Access>,
) -> Vec<Access> {
    let mut merged = intersections(query, found);
    merged.extend(unions(collection, query));
    merged
}

/// Returns pairs of index paths. A pair fetches only the records that both paths find.
fn intersections<'a>(query: &Query, found: impl Iterator<Item = &'a Access>) -> Vec<Access> {
    let forward = |access: &&Access| access.direction == Direction::Ascending && access.path.is_narrow_index();
    let narrow: Vec<Input> = found.filter(forward).map(|access| Input::of(access, query.filter.conjuncts())).collect();
    // A path that finds every record of another one adds nothing to it. Of equal ones, the first remains.
    let adds = |(at, input): &(usize, &Input)| {
        !narrow.iter().enumerate().any(|(other_at, other)| {
            other_at != *at && other.is_within(input) && (other_at < *at || !input.is_within(other))
        })
    };
    let narrow: Vec<&Input> =
        narrow.iter().enumerate().filter(adds).map(|(_, input)| input).take(MAX_INTERSECTED).collect();
    let mut merged = Vec::new();
    for (at, left) in narrow.iter().enumerate() {
        for right in narrow.iter().skip(at + 1).filter(|right| !right.access.path.same_index(&left.access.path)) {
            let inputs = vec![left.access.path.clone(), right.access.path.clone()];
            let exact_for = left.access.exact_for.union(right.access.exact_for);
            merged.push(Access::of_path(AccessPath::Merge { how: Combine::Intersection, inputs }, exact_for));
        }
    }
    merged
}

/// Returns a union for each `$or` whose branches all have an index, at most [`MAX_UNIONS`]. The `$or` is checked again unless the index of each
/// branch decides it.
fn unions(collection: &CollectionInfo, query: &Query) -> Vec<Access> {
    let conjuncts = query.filter.conjuncts();
    let limits = |node: &Node| node.branches().is_none_or(|branches| branches.len() <= MAX_BRANCHES_BESIDE);
    // One more than are used, because one of them can be the `$or` itself.
    let limiting = conjuncts.iter().enumerate().filter(|(_, node)| limits(node)).take(MAX_BESIDE + 1);
    let limiting: Vec<(usize, &Node)> = limiting.collect();
    (0..conjuncts.len()).filter_map(|place| union(collection, query, place, &limiting)).take(MAX_UNIONS).collect()
}

/// Returns the union of a path for each branch of the conjunct at `place`. `None` if it is no `$or`, a branch has no path, or one path
/// finds the records of all branches. The other conjuncts hold in every branch, and those that are `limiting` limit its path, too:
/// `{a: 1, $or: [{b: 2}, {c: 3}]}` reads indexes on `{a, b}` and `{a, c}`.
fn union(collection: &CollectionInfo, query: &Query, place: usize, limiting: &[(usize, &Node)]) -> Option<Access> {
    let node = query.filter.conjuncts().get(place)?;
    let branches = node.branches()?;
    let others: Vec<(usize, &Node)> =
        limiting.iter().copied().filter(|(at, _)| *at != place).take(MAX_BESIDE).collect();
    let mut inputs: Vec<Input> = Vec::new();
    // The other conjuncts for which the paths so far are exact.
    let mut exact_others: Vec<usize> = others.iter().map(|(at, _)| *at).collect();
    // Expressions are evaluated in any case, because they can fail.
    let mut is_exact = !node.computes();
    for branch in branches {
        // A call that is over gets no plan.
        work::take(STEPS_PER_BRANCH).ok()?;
        let own = branch.conjuncts();
        let filter = Filter::of_conjuncts(own.iter().chain(others.iter().map(|(_, node)| *node)).cloned().collect());
        if filter.conjuncts().len() != own.len() + others.len() {
            return None;
        }
        let found = by_branch(collection, branch, &filter)?;
        is_exact &= (0..own.len()).all(|at| found.exact_for.contains(at));
        exact_others.retain(|place_of_other| {
            others
                .iter()
                .position(|(at, _)| *at == *place_of_other)
                .is_some_and(|at| found.exact_for.contains(own.len() + at))
        });
        // A path whose records another one finds as well adds nothing to the union.
        let found = Input::of(&found, filter.conjuncts());
        if inputs.len() <= MAX_COMPARED {
            if inputs.iter().any(|other| found.is_within(other)) {
                continue;
            }
            inputs.retain(|other| !other.is_within(&found));
        }
        inputs.push(found);
    }
    let exact = exact_others.into_iter().chain(is_exact.then_some(place));
    let exact_for = exact.fold(Conjuncts::default(), |all, at| all.union(Conjuncts::one(at)));
    // One path that finds the records of every branch is a candidate without a merge: every branch limits its fields.
    (inputs.len() > 1).then(|| {
        let inputs = inputs.into_iter().map(|input| input.access.path).collect();
        Access::of_path(AccessPath::Merge { how: Combine::Union, inputs }, exact_for)
    })
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
    fn same_index(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Index { index, .. }, Self::Index { index: other, .. }) => index.keyspace == other.keyspace,
            _ => false,
        }
    }
}

/// An access path, and what is known of its records.
struct Input {
    access: Access,
    /// The conditions that every record of the path satisfies: the conjuncts for which it is exact, and those of a partial
    /// index.
    satisfied: Filter,
}

impl Input {
    fn of(access: &Access, conjuncts: &[Node]) -> Self {
        let exact = conjuncts.iter().enumerate().filter(|(place, _)| access.exact_for.contains(*place));
        let partial = match &access.path {
            AccessPath::Index { index, .. } => index.partial.as_ref(),
            AccessPath::Records { .. } | AccessPath::Points { .. } | AccessPath::Merge { .. } => None,
        };
        let of_index = partial.into_iter().flat_map(|partial| partial.filter.conjuncts());
        let satisfied = Filter::of_conjuncts(exact.map(|(_, node)| node).chain(of_index).cloned().collect());
        Self { access: access.clone(), satisfied }
    }

    /// Returns whether `other` provably finds every record that the path finds.
    fn is_within(&self, other: &Self) -> bool {
        match (&self.access.path, &other.access.path) {
            (AccessPath::Index { .. }, AccessPath::Index { index, bounds, checks }) => {
                let in_partial =
                    index.partial.as_ref().is_none_or(|condition| self.satisfied.implies(&condition.filter));
                let in_sparse = || {
                    !index.sparse
                        || bounds.fields().iter().any(excludes_null)
                        || has_present_field(index, &self.satisfied)
                };
                // `limits` omits the other path's filter.
                let passes = || checks.filter.as_ref().is_none_or(|filter| self.satisfied.implies(&filter.drawn));
                let is_held = |(path, allowed): (&Path, &IntervalSet)| self.holds(path, allowed, index);
                in_partial && in_sparse() && passes() && other.access.path.limits().all(is_held)
            }
            (AccessPath::Points { ids }, AccessPath::Points { ids: others }) => ids.intersect(others) == *ids,
            _ => false,
        }
    }

    /// Returns whether every record of the path provably has an entry in `index` with a value within `allowed` at `path`.
    fn holds(&self, path: &Path, allowed: &IntervalSet, index: &IndexInfo) -> bool {
        let is_within = |set: &IntervalSet| set.intersect(allowed) == *set;
        let mut is_satisfied = false;
        for node in self.satisfied.conjuncts() {
            if path.as_str() == PATH_FIELD {
                let required = node.required_path().map(|(required, _)| WildcardPattern::at_or_below(required));
                is_satisfied |= required.as_ref().is_some_and(is_within);
            }
            node.each_term(index.collation.as_ref(), &mut |term| {
                is_satisfied |= term.validity == Validity::Always && term.path == *path && is_within(&term.intervals);
            });
        }
        is_satisfied || self.access.path.limits().any(|(limited, set)| limited == path && is_within(set))
    }
}
