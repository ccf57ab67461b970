//! Every access path that could serve a query. None loses a row: what the bounds do not prove, the filter decides.

use std::sync::Arc;

use slate_query::{
    filter::{Exactness, Filter, Node, Term},
    interval::{Interval, IntervalSet},
    key,
    path::Path,
    pattern::Direction,
    raw::Value,
};

use super::{
    Combine, Conjuncts, IndexBounds, Query,
    access::{Access, AccessPath},
    growing::GrowingBounds,
    rules,
};
use crate::catalog::{CollectionInfo, IndexInfo};

/// What conjuncts say of the paths that an access path may go by.
struct Terms {
    terms: Vec<Said>,
}

/// One thing that a conjunct says.
struct Said {
    term: Term,
    /// The conjunct, where this is all that it says.
    whole: Conjuncts,
}

impl Said {
    /// What an entry within the term's intervals proves: nothing where they are less exact than `least`, which an index whose
    /// path may hold arrays asks more of.
    fn proves(&self, least: Exactness) -> Conjuncts {
        if self.term.exact >= least { self.whole } else { Conjuncts::default() }
    }
}

impl Terms {
    fn of(conjuncts: &[Node], collection: &CollectionInfo) -> Self {
        let is_indexed = |path: &Path| {
            let mut fields = collection.indexes.iter().flat_map(|index| index.pattern.fields());
            is_id(path) || fields.any(|(field, _)| field == path)
        };
        let mut terms = Vec::new();
        for (at, node) in conjuncts.iter().enumerate() {
            // What is said of other paths proves nothing: it need not be known.
            if node.only_path().is_none_or(is_indexed) {
                let before = terms.len();
                node.each_term(&mut |term| terms.push(Said { term, whole: Conjuncts::default() }));
                // One that says several things is asked again.
                if let Some([only]) = terms.get_mut(before..) {
                    only.whole = Conjuncts::one(at);
                }
            }
        }
        Self { terms }
    }

    fn on<'s>(&'s self, path: &'s Path) -> impl Iterator<Item = &'s Said> {
        self.terms.iter().filter(move |said| said.term.path == *path)
    }
}

pub(super) const ID: &str = "_id";

pub(super) fn is_id(path: &Path) -> bool {
    path.as_str() == ID
}

/// What the terms of one path, which holds no array, say together.
fn combined<'t>(terms: impl Iterator<Item = &'t Said>) -> Option<(IntervalSet, Conjuncts)> {
    terms.fold(None, |all: Option<(IntervalSet, Conjuncts)>, said| {
        let proves = said.proves(Exactness::WhereNotMultikey);
        Some(match all {
            None => (said.term.intervals.clone(), proves),
            Some((set, proven)) => (set.intersect(&said.term.intervals), proven.union(proves)),
        })
    })
}

/// Every usable access path: the scan first, then `_id`, then the indexes as they were declared, then merges.
pub(super) fn candidates(collection: &CollectionInfo, query: &Query) -> Vec<Access> {
    let mut found = directed(singles(collection, query, &Terms::of(query.filter.conjuncts(), collection)), query);
    let merged = merges(collection, query, found.iter());
    found.extend(merged);
    found
}

/// The access paths by the records, or by one index, among which the best one is: those left out would never be chosen.
/// Where one names a single record, it is alone: nothing is cheaper, and to list and weigh the others would take several
/// times as long as to read that record.
pub(super) fn contenders(collection: &CollectionInfo, query: &Query) -> Vec<Access> {
    let terms = Terms::of(query.filter.conjuncts(), collection);
    let is_of_one_record = |access: &Access| access.path.is_of_one_record();
    if let Some(point) = by_id(&terms).filter(is_of_one_record) {
        return vec![point];
    }
    let mut found = singles(collection, query, &terms);
    if let Some(point) = found.iter().position(is_of_one_record) {
        return vec![found.swap_remove(point)];
    }
    found.retain(|access| !is_beaten_by_the_scan(access, query));
    directed(found, query)
}

/// Whether an access path reads every record by way of an index that is of no use for it: neither does it tell which
/// records need not be fetched, nor give an order, nor spare the records themselves.
fn is_beaten_by_the_scan(access: &Access, query: &Query) -> bool {
    let AccessPath::Index { index, bounds, checks } = &access.path else { return false };
    let gives_order = |sort| {
        let ordered = |direction| access.path.ordered_by(sort, direction).fields > 0;
        ordered(Direction::Ascending) || ordered(Direction::Descending)
    };
    bounds.used() == 0
        && checks.is_empty()
        && !index.sparse
        && index.partial.is_none()
        && !query.order().is_some_and(gives_order)
        && !rules::reads_keys_alone(access, query)
}

fn singles(collection: &CollectionInfo, query: &Query, terms: &Terms) -> Vec<Access> {
    // Most indexes give two: with bounds and without.
    let mut found = Vec::with_capacity(2 + 2 * collection.indexes.len());
    found.push(Access::scan());
    found.extend(by_id(terms));
    for index in collection.indexes.iter().filter(|index| serves(index, &query.filter)) {
        by_index(index, terms, &mut found);
    }
    found
}

/// Those, and the same backwards where that gives an order that walking forwards does not.
fn directed(found: Vec<Access>, query: &Query) -> Vec<Access> {
    let Some(sort) = query.order() else { return found };
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

/// The access paths that put together several of those found.
pub(super) fn merges<'a>(
    collection: &CollectionInfo,
    query: &Query,
    found: impl Iterator<Item = &'a Access>,
) -> Vec<Access> {
    let mut merged = intersections(found);
    merged.extend(unions(collection, query));
    merged
}

/// Whether the index holds an entry for every document that matches.
pub(super) fn serves(index: &IndexInfo, filter: &Filter) -> bool {
    let condition = index.partial.as_ref().is_none_or(|partial| filter.implies(&partial.filter));
    let present = !index.sparse || index.pattern.fields().iter().any(|(path, _)| filter.implies(&Filter::exists(path)));
    condition && present
}

/// `_id` is unique, never an array, and the records lie in its order.
fn by_id(terms: &Terms) -> Option<Access> {
    let (set, proven) = combined(terms.terms.iter().filter(|said| is_id(&said.term.path)))?;
    let path =
        if set.is_points() { AccessPath::Points { ids: set } } else { AccessPath::Records { bounds: Some(set) } };
    Some(Access::of_path(path, proven))
}

/// The index without bounds (for its order), and with the bounds that the filter gives. On a path that held arrays two
/// conjuncts may be satisfied by different elements: each gives a candidate of its own there.
fn by_index(index: &Arc<IndexInfo>, terms: &Terms, found: &mut Vec<Access>) {
    found.push(bounded(index, IndexBounds::default(), Conjuncts::default(), terms));
    let mut growing = vec![GrowingBounds::default()];
    for (field, (path, _)) in index.pattern.fields().iter().enumerate() {
        if shares_an_array(index, field) || !growing.iter().any(GrowingBounds::is_open) {
            break;
        }
        if index.is_multikey_at(field) {
            let each: Vec<&Said> = terms.on(path).collect();
            if each.is_empty() {
                break;
            }
            let grow = |grown: &GrowingBounds| -> Vec<GrowingBounds> {
                if !grown.is_open() {
                    return vec![grown.clone()];
                }
                each.iter()
                    .map(|said| grown.with(said.term.intervals.clone(), said.proves(Exactness::Always)))
                    .collect()
            };
            growing = growing.iter().flat_map(grow).collect();
            // The choices of later fields are few; those of the first are the conjuncts on it.
            growing.truncate(MAX_CHOICES);
        } else {
            let Some((set, proven)) = combined(terms.on(path)) else { break };
            match growing.as_mut_slice() {
                [only] => only.push(set, proven),
                several => several.iter_mut().for_each(|grown| grown.push(set.clone(), proven)),
            }
        }
    }
    for (bounds, proven) in growing.into_iter().map(|grown| grown.finish(index)) {
        if bounds.used() > 0 && is_held(index, &bounds) {
            found.push(bounded(index, bounds, proven, terms));
        }
    }
}

/// Whether the index holds the entries that these bounds are about. Of a record's entries a sparse index leaves out those
/// in which every field is missing, and where arrays give a record several, one of those may be what satisfies a
/// condition that null satisfies.
fn is_held(index: &IndexInfo, bounds: &IndexBounds) -> bool {
    if !index.sparse || !index.is_multikey() {
        return true;
    }
    let mut null = Vec::new();
    key::encode(Value::NULL, &mut null);
    bounds.fields().iter().any(|set| !set.contains(&null))
}

/// How many ways to combine the conjuncts on an index's multikey fields are weighed.
const MAX_CHOICES: usize = 16;

/// The access by an index with these bounds. Conditions on fields that they do not reach are checked entry by entry,
/// before a record is fetched, where an entry is sure to hold what the record does.
fn bounded(index: &Arc<IndexInfo>, bounds: IndexBounds, mut proven: Conjuncts, terms: &Terms) -> Access {
    let mut checks = Vec::new();
    if !index.is_multikey() && !index.truncated {
        // Conditions on the first field are bounds: a walk that checks them instead is never better.
        for (field, (path, _)) in index.pattern.fields().iter().enumerate().skip(bounds.used().max(1)) {
            if let Some((set, proves)) = combined(terms.on(path)) {
                checks.push((field, set));
                proven = proven.union(proves);
            }
        }
    }
    if index.truncated {
        proven = Conjuncts::default();
    }
    Access::of_path(AccessPath::Index { index: Arc::clone(index), bounds, checks }, proven)
}

/// Whether the field's path goes through an array that an earlier field's goes through too. Conditions on the two may
/// be met by different elements, and an entry pairs fields of one element.
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

/// Of two indexes that each leave much, the records that both name: one fetch for what would be two filters' work.
fn intersections<'a>(found: impl Iterator<Item = &'a Access>) -> Vec<Access> {
    let forward = |access: &&Access| access.direction == Direction::Ascending && access.path.is_narrow_index();
    let narrow: Vec<&Access> = found.filter(forward).take(MAX_MERGED).collect();
    let mut merged = Vec::new();
    for (at, left) in narrow.iter().enumerate() {
        for right in narrow.iter().skip(at + 1).filter(|right| !right.path.same_index(&left.path)) {
            let inputs = vec![left.path.clone(), right.path.clone()];
            let proven = left.proven.union(right.proven);
            merged.push(Access::of_path(AccessPath::Merge { how: Combine::Intersection, inputs }, proven));
        }
    }
    merged
}

/// How many indexes are tried in pairs.
const MAX_MERGED: usize = 4;

/// The branches of an `$or` with an index each: the records that any branch's names. The filter is asked again.
fn unions(collection: &CollectionInfo, query: &Query) -> Vec<Access> {
    let branch = |branch: &Node| -> Option<AccessPath> {
        let terms = Terms::of(branch.conjuncts(), collection);
        let mut by_indexes = Vec::new();
        for index in collection.indexes.iter().filter(|index| serves(index, &query.filter)) {
            by_index(index, &terms, &mut by_indexes);
        }
        by_indexes.retain(|access| access.path.is_narrow_index());
        let by_id = by_id(&terms).filter(|access| matches!(access.path, AccessPath::Points { .. }));
        Some(by_id.into_iter().chain(by_indexes).min_by_key(points_first)?.path)
    };
    let union = |branches: &[Node]| -> Option<Access> {
        let inputs = branches.iter().map(branch).collect::<Option<_>>()?;
        Some(Access::of_path(AccessPath::Merge { how: Combine::Union, inputs }, Conjuncts::default()))
    };
    query.filter.conjuncts().iter().filter_map(Node::branches).filter_map(union).collect()
}

/// Of several ways for one branch: that which binds most fields to points, and among equals the first declared.
fn points_first(access: &Access) -> std::cmp::Reverse<usize> {
    std::cmp::Reverse(match &access.path {
        AccessPath::Points { .. } => usize::MAX,
        AccessPath::Index { bounds, .. } => bounds.fields().iter().filter(|set| set.is_points()).count(),
        AccessPath::Records { .. } | AccessPath::Merge { .. } => 0,
    })
}

/// How much an access path leaves out, told without looking at the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Narrowing {
    /// Single values, or a stretch of the order.
    Narrow,
    /// All but a stretch: the negation of something.
    Wide,
    /// Nothing.
    Nothing,
}

impl AccessPath {
    pub(super) fn narrowing(&self) -> Narrowing {
        let first = match self {
            Self::Points { .. } | Self::Merge { .. } => return Narrowing::Narrow,
            Self::Records { bounds } => bounds.as_ref(),
            Self::Index { bounds, .. } => bounds.fields().first(),
        };
        let Some(set) = first else { return Narrowing::Nothing };
        let touches_both = set.iter().any(Interval::is_open_below) && set.iter().any(Interval::is_open_above);
        match set {
            set if set.is_all() => Narrowing::Nothing,
            _ if touches_both => Narrowing::Wide,
            _ => Narrowing::Narrow,
        }
    }

    pub(super) fn is_narrow_index(&self) -> bool {
        matches!(self, Self::Index { .. }) && self.narrowing() == Narrowing::Narrow
    }

    fn same_index(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Index { index, .. }, Self::Index { index: other, .. }) => index.keyspace == other.keyspace,
            _ => false,
        }
    }
}
