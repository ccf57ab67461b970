//! Lists the access paths that can serve a query. Each of them returns all matching records: conjuncts whose bounds are
//! not exact remain in the filter.

use std::sync::Arc;

use slate_query::{
    collation::Collation,
    filter::{Exactness, Filter, Node, Term, Validity},
    interval::{Interval, IntervalSet},
    key,
    path::Path,
    pattern::Direction,
    raw::Value,
    work,
};

use super::{
    Checks, Conjuncts, EntryFilter, IndexBounds, Output, Query,
    access::{Access, AccessPath, GrowingBounds},
    candidate::Candidate,
};
use crate::catalog::{CollectionInfo, IndexInfo, Wildcard};

mod merges;
mod wildcards;

pub(super) use merges::merges;

/// Maximum number of combinations of conjuncts on an index's multikey fields. Further ones are not considered.
const MAX_MULTIKEY_BOUNDS: usize = 16;

/// The steps of comparing a conjunct with each index; see [`work`].
const STEPS_PER_CONJUNCT: usize = 8;

/// The terms of a filter's conjuncts on `_id` and on indexed paths.
#[derive(Clone)]
struct Terms<'c> {
    terms: Vec<ConjunctTerm>,
    conjuncts: &'c [Node],
}

#[derive(Clone)]
struct ConjunctTerm {
    term: Term,
    /// The conjunct, if this is its only term.
    conjunct: Conjuncts,
}

impl ConjunctTerm {
    /// Returns the conjuncts that every entry within the term's intervals satisfies, in an index with the required
    /// exactness.
    fn exact_for(&self, required: Exactness) -> Conjuncts {
        if self.term.exact >= required { self.conjunct } else { Conjuncts::default() }
    }
}

impl<'c> Terms<'c> {
    /// Returns the terms for indexes of this collation, or for those without one. They are incomplete once the call is over.
    fn of(conjuncts: &'c [Node], collection: &CollectionInfo, collation: Option<&Collation>) -> Self {
        let is_indexed = |path: &Path| {
            let mut fields = collection.indexes.iter().flat_map(|index| index.pattern.fields());
            let mut wildcards = collection.indexes.iter().filter_map(|index| index.wildcard.as_ref());
            let is_held = |held: &Wildcard| {
                held.pattern.covers(path) || held.pattern.others().iter().any(|(field, _)| field == path)
            };
            is_id(path) || fields.any(|(field, _)| field == path) || wildcards.any(|held| is_held(held))
        };
        let mut terms = Vec::new();
        for (at, node) in conjuncts.iter().enumerate() {
            if work::take(STEPS_PER_CONJUNCT).is_err() {
                break;
            }
            if node.only_path().is_none_or(is_indexed) {
                let before = terms.len();
                node.each_term(collation, &mut |term| {
                    terms.push(ConjunctTerm { term, conjunct: Conjuncts::default() })
                });
                if let Some([only]) = terms.get_mut(before..) {
                    only.conjunct = Conjuncts::one(at);
                }
            }
        }
        Self { terms, conjuncts }
    }

    /// Returns the conjuncts whose only term is on one of the first `fields` of the index.
    fn limited_by(&self, index: &IndexInfo, fields: usize) -> Conjuncts {
        let fields = index.pattern.fields().iter().take(fields);
        fields
            .flat_map(|(path, _)| self.on(path))
            .fold(Conjuncts::default(), |limited, term| limited.union(term.conjunct))
    }

    fn on<'t>(&'t self, path: &'t Path) -> impl Iterator<Item = &'t ConjunctTerm> {
        self.terms.iter().filter(move |term| term.term.path == *path)
    }
}

fn is_id(path: &Path) -> bool {
    path.as_str() == "_id"
}

/// Returns the intersection of the terms on a path without arrays, and the conjuncts for which it is exact; `None` without
/// terms.
fn combined<'t>(mut terms: impl Iterator<Item = &'t ConjunctTerm>) -> Option<(IntervalSet, Conjuncts)> {
    let exact_for = |term: &ConjunctTerm| term.exact_for(Exactness::WhereNotMultikey);
    let first = terms.next()?;
    let mut all_exact_for = exact_for(first);
    let others = terms.map(|term| {
        all_exact_for = all_exact_for.union(exact_for(term));
        &term.term.intervals
    });
    let set = intersection(&first.term.intervals, others);
    Some((set, all_exact_for))
}

/// Returns the intersection of all sets. Intersects pairs of similar size, because an intersection of many `$ne` grows with
/// each of them.
fn intersection<'s>(first: &IntervalSet, others: impl Iterator<Item = &'s IntervalSet>) -> IntervalSet {
    // Each pair is the intersection of 2ⁿ of the given sets, and n.
    let mut pairs: Vec<(IntervalSet, u32)> = Vec::new();
    let mut last = first.clone();
    for set in others {
        pairs.push((last, 0));
        last = set.clone();
        while let [.., (left, of_left), (right, of_right)] = pairs.as_slice()
            && of_left == of_right
        {
            let both = (left.intersect(right), of_left + 1);
            pairs.truncate(pairs.len() - 2);
            pairs.push(both);
        }
    }
    pairs.iter().rev().fold(last, |all, (set, _)| all.intersect(set))
}

/// Returns every usable access path: the scan, `_id`, the indexes in the order of their declaration, then merges.
pub(super) fn candidates(collection: &CollectionInfo, query: &Query) -> Vec<Access> {
    let terms = Terms::of(query.filter.conjuncts(), collection, None);
    let mut found = directed(singles(collection, query, &terms), query);
    let merged = merges(collection, query, found.iter());
    found.extend(merged);
    found
}

/// Returns whether `_id` or an index finds the matching documents without reading all others.
pub(crate) fn narrows(collection: &CollectionInfo, filter: &Filter) -> bool {
    candidates(collection, &Query::of(filter.clone())).iter().any(|access| match &access.path {
        AccessPath::Points { .. } | AccessPath::Merge { .. } => true,
        AccessPath::Index { .. } => access.path.is_narrow_index(),
        AccessPath::Records { bounds } => bounds.is_some(),
    })
}

/// Returns the candidates by `_id` or one index that can be the cheapest. One that reads at most one record is returned
/// alone, because no other is cheaper and listing them takes longer than reading the record.
pub(super) fn viable_candidates(collection: &CollectionInfo, query: &Query) -> Vec<Candidate> {
    let terms = Terms::of(query.filter.conjuncts(), collection, None);
    let is_of_one_record = |access: &Access| access.path.is_of_one_record();
    if let Some(point) = by_id(&terms).filter(is_of_one_record) {
        return vec![Candidate::new(point, query)];
    }
    let mut found = singles(collection, query, &terms);
    if let Some(point) = found.iter().position(is_of_one_record) {
        return vec![Candidate::new(found.swap_remove(point), query)];
    }
    // Whole documents in any order: paths that cost more than the scan need no candidate.
    if query.sort.is_none() && matches!(query.output, Output::Whole | Output::Key) {
        found.retain(|access| !finds_everything(access));
    }
    let found = directed(found, query);
    let mut candidates = Vec::with_capacity(found.len());
    for access in found {
        let candidate = Candidate::new(access, query);
        let gives_order = query.sort.is_some() && candidate.sorting.is_none_or(|sorting| sorting.presorted > 0);
        if gives_order || candidate.is_keys_only() || !finds_everything(&candidate.access) {
            candidates.push(candidate);
        }
    }
    candidates
}

/// Returns whether a path finds every record by an index. This costs more than the scan unless it gives an order or reads no
/// records.
fn finds_everything(access: &Access) -> bool {
    match &access.path {
        AccessPath::Index { index, bounds, checks } => {
            bounds.used() <= index.constant_fields && checks.is_empty() && index.has_all_documents()
        }
        AccessPath::Records { .. } | AccessPath::Points { .. } | AccessPath::Merge { .. } => false,
    }
}

fn singles(collection: &CollectionInfo, query: &Query, terms: &Terms<'_>) -> Vec<Access> {
    // Most indexes give two paths: with bounds and without.
    let mut found = Vec::with_capacity(2 + 2 * collection.indexes.len());
    found.push(Access::full_scan());
    found.extend(by_id(terms));
    by_indexes(collection, &query.filter, terms, &mut found);
    found
}

/// Adds the paths by each index. `terms` are the terms of the filter's conjuncts, which indexes without a collation use.
fn by_indexes(collection: &CollectionInfo, filter: &Filter, terms: &Terms<'_>, found: &mut Vec<Access>) {
    let conjuncts = filter.conjuncts();
    for index in collection.usable().filter(|index| serves(index, filter)) {
        let collated = index.collation.as_ref().map(|by| Terms::of(conjuncts, collection, Some(by)));
        let terms = collated.as_ref().unwrap_or(terms);
        match &index.wildcard {
            None => by_index(index, terms, found),
            Some(wildcard) => wildcards::by_wildcard(index, wildcard, conjuncts, terms, found),
        }
    }
}

/// Returns the paths by all entries of an index, whether or not it has one for every matching document.
pub(super) fn of_all_entries(index: &Arc<IndexInfo>, query: &Query) -> Vec<Access> {
    let path =
        AccessPath::Index { index: Arc::clone(index), bounds: IndexBounds::default(), checks: Checks::default() };
    directed(vec![Access::of_path(path, Conjuncts::default())], query)
}

/// Adds the descending walk of each path if it is ordered by more of the sort.
fn directed(found: Vec<Access>, query: &Query) -> Vec<Access> {
    let Some(sort) = &query.sort else { return found };
    let mut directed = Vec::with_capacity(found.len());
    for access in found {
        let ordered = |direction| access.path.ordered_by(sort, direction).fields;
        let backward = (ordered(Direction::Descending) > ordered(Direction::Ascending))
            .then(|| Access { direction: Direction::Descending, ..access.clone() });
        directed.push(access);
        directed.extend(backward);
    }
    directed
}

/// Returns whether the index provably has an entry for every matching document.
fn serves(index: &IndexInfo, filter: &Filter) -> bool {
    let condition = index.partial.as_ref().is_none_or(|partial| filter.implies(&partial.filter));
    condition && (!index.sparse || has_present_field(index, filter))
}

/// Returns whether every matching document provably has one of the fields of the index.
fn has_present_field(index: &IndexInfo, filter: &Filter) -> bool {
    index.pattern.fields().iter().any(|(path, _)| filter.implies(&Filter::exists(path)))
}

/// Returns the path by `_id`, which is unique and never an array. Its records come in the order of `_id`.
fn by_id(terms: &Terms<'_>) -> Option<Access> {
    let (set, exact_for) = combined(terms.terms.iter().filter(|term| is_id(&term.term.path)))?;
    let path =
        if set.is_points() { AccessPath::Points { ids: set } } else { AccessPath::Records { bounds: Some(set) } };
    Some(Access::of_path(path, exact_for))
}

/// Adds the paths by an index: without bounds, for its order, and with the bounds of the filter. On a multikey field
/// different elements can satisfy two conjuncts, so each conjunct gives a separate path.
fn by_index(index: &Arc<IndexInfo>, terms: &Terms<'_>, found: &mut Vec<Access>) {
    found.push(bounded(index, IndexBounds::default(), Conjuncts::default(), terms));
    by_bounds(index, terms, found);
}

fn by_bounds(index: &Arc<IndexInfo>, terms: &Terms<'_>, found: &mut Vec<Access>) {
    let mut growing = vec![GrowingBounds::default()];
    for (field, (path, _)) in index.pattern.fields().iter().enumerate() {
        if shares_an_array(index, field) || !growing.iter().any(GrowingBounds::is_open) {
            break;
        }
        if index.is_multikey_at(field) {
            let each: Vec<&ConjunctTerm> =
                terms.on(path).filter(|term| term.term.validity == Validity::Always).collect();
            if each.is_empty() {
                break;
            }
            let grow = |grown: &GrowingBounds| -> Vec<GrowingBounds> {
                if !grown.is_open() {
                    return vec![grown.clone()];
                }
                each.iter()
                    .map(|term| grown.with(term.term.intervals.clone(), term.exact_for(Exactness::Always)))
                    .collect()
            };
            growing = growing.iter().flat_map(grow).collect();
            growing.truncate(MAX_MULTIKEY_BOUNDS);
        } else {
            let Some((set, exact_for)) = combined(terms.on(path)) else { break };
            match growing.as_mut_slice() {
                [only] => only.push(set, exact_for),
                several => several.iter_mut().for_each(|grown| grown.push(set.clone(), exact_for)),
            }
        }
    }
    for (bounds, exact_for) in growing.into_iter().map(|grown| grown.finish(index)) {
        if bounds.used() > 0 && has_entries(index, &bounds) {
            found.push(bounded(index, bounds, exact_for, terms));
        }
    }
}

/// Returns whether the index has every entry that these bounds select. A sparse multikey index omits the entries
/// in which every field is missing, and a condition that null satisfies would select them.
fn has_entries(index: &IndexInfo, bounds: &IndexBounds) -> bool {
    !index.sparse || !index.is_multikey() || bounds.fields().iter().any(excludes_null)
}

/// Returns whether a missing field is outside of these bounds.
fn excludes_null(set: &IntervalSet) -> bool {
    let mut null = Vec::new();
    key::encode(Value::NULL, &mut null);
    !set.contains(&null)
}

/// Returns the path by an index with these bounds. Conditions on fields after the bounds are checked on the entry
/// before its record is fetched, if entries contain the exact values of the record in these fields. So are other conditions
/// on the fields of the index and on `_id`.
fn bounded(index: &Arc<IndexInfo>, bounds: IndexBounds, mut exact_for: Conjuncts, terms: &Terms<'_>) -> Access {
    let mut checks = Checks::default();
    if !index.truncated {
        // A condition on the first field is used as bounds, which is never worse than checking it.
        let first = bounds.used().max(index.constant_fields + 1);
        for (field, (path, _)) in index.pattern.fields().iter().enumerate().skip(first) {
            if index.is_multikey_at(field) {
                continue;
            }
            if let Some((set, checked)) = combined(terms.on(path)) {
                checks.values.push((field, set));
                exact_for = exact_for.union(checked);
            }
        }
        let limited = terms.limited_by(index, bounds.used());
        // Without bounds, conditions on the first field are not checked on entries: the path with bounds is never worse.
        let decided = if bounds.used() > index.constant_fields {
            exact_for
        } else {
            exact_for.union(terms.limited_by(index, index.constant_fields + 1))
        };
        if let Some((filter, decided)) = EntryFilter::of(index, terms.conjuncts, decided, limited) {
            // A set of values is redundant if the filter decides all conjuncts on its field.
            checks.values.retain(|(field, _)| {
                let path = index.pattern.fields().get(*field).map(|(path, _)| path);
                !path.is_some_and(|path| terms.on(path).all(|term| term.conjunct.are_within(decided)))
            });
            checks.filter = Some(Arc::new(filter));
            exact_for = exact_for.union(decided);
        }
    }
    if index.truncated {
        exact_for = Conjuncts::default();
    }
    exact_for = exact_for.union(implied_by_index(index, terms.conjuncts));
    Access::of_path(AccessPath::Index { index: Arc::clone(index), bounds, checks }, exact_for)
}

/// Returns the conjuncts that every document of a partial index satisfies. Expressions are evaluated in any case, because they
/// can fail.
fn implied_by_index(index: &IndexInfo, conjuncts: &[Node]) -> Conjuncts {
    let Some(partial) = &index.partial else { return Conjuncts::default() };
    let implied = |node: &Node| !node.computes() && partial.filter.implies(&Filter::of_conjuncts(vec![node.clone()]));
    let implied = conjuncts.iter().enumerate().filter(|(_, node)| implied(node));
    implied.fold(Conjuncts::default(), |all, (place, _)| all.union(Conjuncts::one(place)))
}

/// Returns whether the field's path leads through the same array as that of an earlier field. Different elements can
/// satisfy the conditions on the two fields, but an entry combines fields of one element.
fn shares_an_array(index: &IndexInfo, field: usize) -> bool {
    let fields = index.pattern.fields();
    let Some((path, _)) = fields.get(field) else { return false };
    let arrays = index.multikey.get(field).copied().unwrap_or_default();
    fields.iter().take(field).any(|(earlier, _)| {
        let shared = path.parts().iter().zip(earlier.parts()).take_while(|(a, b)| a == b).count();
        let mask = 1u64.checked_shl(u32::try_from(shared).unwrap_or(u32::MAX)).map_or(u64::MAX, |bit| bit - 1);
        arrays & mask != 0
    })
}

/// How much an access path narrows, judged by its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Selectivity {
    /// Bound to single values or to a range.
    Narrow,
    /// Bound to everything except a range: the negation of a condition.
    Wide,
    All,
}

impl AccessPath {
    pub(super) fn selectivity(&self) -> Selectivity {
        if matches!(self, Self::Points { .. } | Self::Merge { .. }) {
            return Selectivity::Narrow;
        }
        let Some(set) = self.first_bounds() else { return Selectivity::All };
        let touches_both = set.iter().any(Interval::is_open_below) && set.iter().any(Interval::is_open_above);
        match set {
            set if set.is_all() => Selectivity::All,
            _ if touches_both => Selectivity::Wide,
            _ => Selectivity::Narrow,
        }
    }

    /// Returns the bounds of `_id`, or of the first field of an index that is not constant.
    pub(super) fn first_bounds(&self) -> Option<&IntervalSet> {
        match self {
            Self::Records { bounds } => bounds.as_ref(),
            Self::Index { index, bounds, .. } => bounds.fields().get(index.constant_fields),
            Self::Points { .. } | Self::Merge { .. } => None,
        }
    }

    pub(super) fn is_narrow_index(&self) -> bool {
        matches!(self, Self::Index { .. }) && self.selectivity() == Selectivity::Narrow
    }
}
