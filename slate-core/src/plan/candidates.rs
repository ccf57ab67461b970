//! Every access path that could serve a query. None loses a row: what the bounds do not prove, the filter decides.

use std::sync::Arc;

use slate_query::{
    filter::{Exactness, Filter, Node, Term},
    interval::{Interval, IntervalSet, Place},
    key,
    path::Path,
    pattern::Direction,
    raw::{Doc, Value},
};

use super::{
    Combine, IndexBounds, Query,
    access::{Access, AccessPath},
};
use crate::catalog::{CollectionInfo, IndexInfo};

/// What conjuncts say of single paths.
struct Terms {
    /// The conjunct's place, and one thing it says.
    terms: Vec<(usize, Term)>,
}

impl Terms {
    fn of(conjuncts: &[Node]) -> Self {
        let said = conjuncts.iter().enumerate();
        Self { terms: said.flat_map(|(at, node)| node.terms().into_iter().map(move |term| (at, term))).collect() }
    }

    fn on<'s>(&'s self, path: &'s Path) -> impl Iterator<Item = (usize, &'s Term)> {
        self.terms.iter().filter(move |(_, term)| term.path == *path).map(|(at, term)| (*at, term))
    }

    /// The conjuncts that are proven whole: one that says several things must have each of them proven.
    fn whole(&self, mut proven: Vec<usize>) -> Vec<usize> {
        let said = |at: usize| self.terms.iter().filter(|(conjunct, _)| *conjunct == at).count();
        proven.sort_unstable();
        let counted = |at: usize| proven.iter().filter(|proven| **proven == at).count();
        let mut whole: Vec<usize> = proven.iter().copied().filter(|&at| counted(at) == said(at)).collect();
        whole.dedup();
        whole
    }
}

/// Every usable access path: the scan first, then `_id`, then the indexes as they were declared, then merges.
pub(super) fn candidates(collection: &CollectionInfo, query: &Query) -> Vec<Access> {
    all(collection, query, &Terms::of(query.filter.conjuncts()))
}

/// The access paths among which the best one is: one key of the records, where the filter names one, or else every one.
/// Nothing is cheaper than that one key, and to list the others would take several times as long as to read its record.
pub(super) fn contenders(collection: &CollectionInfo, query: &Query) -> Vec<Access> {
    let terms = Terms::of(query.filter.conjuncts());
    match by_id(&terms).filter(|access| access.path.is_single_point()) {
        Some(point) => vec![point],
        None => all(collection, query, &terms),
    }
}

fn all(collection: &CollectionInfo, query: &Query, terms: &Terms) -> Vec<Access> {
    let conjuncts = query.filter.conjuncts();
    let serving = || collection.indexes.iter().filter(|index| serves(index, &query.filter));
    let mut found = vec![Access::scan()];
    found.extend(by_id(terms));
    for index in serving() {
        found.extend(by_index(index, terms));
    }
    found.extend(intersections(&found));
    found.extend(unions(collection, query, conjuncts));
    let Some(sort) = query.order() else { return found };
    // Walking backwards is worth listing where it gives an order that walking forwards does not.
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

/// Whether the index holds an entry for every document that matches.
pub(super) fn serves(index: &IndexInfo, filter: &Filter) -> bool {
    let condition = index.partial.as_ref().is_none_or(|partial| filter.implies(&partial.filter));
    let present = !index.sparse
        || index.pattern.fields().iter().any(|(path, _)| exists(path).is_some_and(|exists| filter.implies(&exists)));
    condition && present
}

fn exists(path: &Path) -> Option<Filter> {
    let condition = bson::doc! { path.as_str(): { "$exists": true } };
    let condition = bson::RawDocumentBuf::try_from(&condition).ok()?;
    Filter::parse(Doc::from(&condition)).ok()
}

/// `_id` is unique, never an array, and the records lie in its order.
fn by_id(terms: &Terms) -> Option<Access> {
    let mut set = IntervalSet::all();
    let mut proven = Vec::new();
    for (at, term) in terms.terms.iter().filter(|(_, term)| term.path.as_str() == "_id") {
        set = set.intersect(&term.intervals);
        if term.exact >= Exactness::WhereNotMultikey {
            proven.push(*at);
        }
    }
    if set.is_all() {
        return None;
    }
    let path =
        if set.is_points() { AccessPath::Points { ids: set } } else { AccessPath::Records { bounds: Some(set) } };
    Some(Access::of_path(path, terms.whole(proven)))
}

/// The index without bounds (for its order), and with the bounds that the filter gives. On a path that held arrays two
/// conjuncts may be satisfied by different elements: each gives a candidate of its own there.
fn by_index(index: &Arc<IndexInfo>, terms: &Terms) -> Vec<Access> {
    let unbounded = (IndexBounds::default(), Vec::new());
    let mut found = vec![unbounded.clone()];
    let mut growing = vec![unbounded];
    for (field, (path, _)) in index.pattern.fields().iter().enumerate() {
        if shares_an_array(index, field) {
            break;
        }
        let choices = choices(index, field, path, terms);
        if choices.is_empty() {
            break;
        }
        growing = growing.iter().flat_map(|grown| choices.iter().map(|choice| grow(grown, choice))).collect();
        // The choices of later fields are few; those of the first are the conjuncts on it.
        growing.truncate(MAX_CHOICES);
        // Bounds behind a range are not used: the longer list would repeat the shorter.
        if growing.iter().all(|(bounds, _)| bounds.used() <= field) {
            break;
        }
        found.truncate(1);
        found.extend(growing.iter().cloned());
    }
    found.retain(|(bounds, _)| is_held(index, bounds));
    found.into_iter().map(|(bounds, proven)| bounded(index, bounds, proven, terms)).collect()
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
    let mut used = bounds.fields.iter().take(bounds.used()).peekable();
    used.peek().is_none() || used.any(|set| !set.contains(&null))
}

/// Bounds on leading fields, and what they prove: (field, conjunct).
type Bounded = (IndexBounds, Vec<(usize, usize)>);

/// A set of intervals that a field may be bound to, and what it proves.
type Choice = (IntervalSet, Vec<(usize, usize)>);

/// How many ways to combine the conjuncts on an index's multikey fields are weighed.
const MAX_CHOICES: usize = 16;

fn grow((bounds, proven): &Bounded, (set, proves): &Choice) -> Bounded {
    let mut bounds = bounds.clone();
    bounds.fields.push(set.clone());
    (bounds, [&proven[..], proves].concat())
}

/// The access by an index with these bounds. Conditions on fields that they do not reach are checked entry by entry,
/// before a record is fetched, where an entry is sure to hold what the record does.
fn bounded(index: &Arc<IndexInfo>, mut bounds: IndexBounds, mut proven: Vec<(usize, usize)>, terms: &Terms) -> Access {
    let used = bounds.used();
    bounds.fields.truncate(used);
    proven.retain(|(field, _)| *field < used);
    let mut checks = Vec::new();
    if !index.is_multikey() && !index.truncated {
        // Conditions on the first field are bounds: a walk that checks them instead is never better.
        for (field, (path, _)) in index.pattern.fields().iter().enumerate().skip(used.max(1)) {
            if let Some((set, proves)) = choices(index, field, path, terms).pop() {
                checks.push((field, set));
                proven.extend(proves);
            }
        }
    }
    if index.truncated {
        proven.clear();
    }
    let proven = terms.whole(proven.into_iter().map(|(_, at)| at).collect());
    Access::of_path(AccessPath::Index { index: Arc::clone(index), bounds, checks }, proven)
}

/// The sets of intervals that one field may be bound to.
fn choices(index: &IndexInfo, field: usize, path: &Path, terms: &Terms) -> Vec<Choice> {
    if index.is_multikey_at(field) {
        let single = |(at, term): (usize, &Term)| {
            let proves = (term.exact == Exactness::Always).then_some((field, at));
            (term.intervals.clone(), proves.into_iter().collect())
        };
        return terms.on(path).map(single).collect();
    }
    let mut set = IntervalSet::all();
    let mut proves = Vec::new();
    for (at, term) in terms.on(path) {
        set = set.intersect(&term.intervals);
        if term.exact >= Exactness::WhereNotMultikey {
            proves.push((field, at));
        }
    }
    if set.is_all() { Vec::new() } else { vec![(set, proves)] }
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
fn intersections(found: &[Access]) -> Vec<Access> {
    let narrow: Vec<&Access> = found.iter().filter(|access| access.path.is_narrow_index()).take(MAX_MERGED).collect();
    let mut merged = Vec::new();
    for (at, left) in narrow.iter().enumerate() {
        for right in narrow.iter().skip(at + 1).filter(|right| !right.path.same_index(&left.path)) {
            let inputs = vec![left.path.clone(), right.path.clone()];
            let mut proven = [&left.proven[..], &right.proven[..]].concat();
            proven.sort_unstable();
            proven.dedup();
            merged.push(Access::of_path(AccessPath::Merge { how: Combine::Intersection, inputs }, proven));
        }
    }
    merged
}

/// How many indexes are tried in pairs.
const MAX_MERGED: usize = 4;

/// The branches of an `$or` with an index each: the records that any branch's names. The filter is asked again.
fn unions(collection: &CollectionInfo, query: &Query, conjuncts: &[Node]) -> Vec<Access> {
    let union = |branches: &[Node]| -> Option<Access> {
        let inputs = branches.iter().map(|branch| {
            let terms = Terms::of(branch.conjuncts());
            let indexes = collection.indexes.iter().filter(|index| serves(index, &query.filter));
            let by_index = indexes.flat_map(|index| by_index(index, &terms));
            let by_id = by_id(&terms).filter(|access| matches!(access.path, AccessPath::Points { .. }));
            by_id.into_iter().chain(by_index.filter(|access| access.path.is_narrow_index())).min_by_key(points_first)
        });
        let inputs: Vec<AccessPath> = inputs.map(|access| Some(access?.path)).collect::<Option<_>>()?;
        Some(Access::of_path(AccessPath::Merge { how: Combine::Union, inputs }, Vec::new()))
    };
    conjuncts.iter().filter_map(Node::branches).filter_map(union).collect()
}

/// Of several ways for one branch: that which binds most fields to points, and among equals the first declared.
fn points_first(access: &Access) -> std::cmp::Reverse<usize> {
    std::cmp::Reverse(match &access.path {
        AccessPath::Points { .. } => usize::MAX,
        AccessPath::Index { bounds, .. } => bounds.fields.iter().filter(|set| set.is_points()).count(),
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
            Self::Index { bounds, .. } => bounds.fields.first(),
        };
        let Some(set) = first else { return Narrowing::Nothing };
        let all = Interval::all();
        let touches = |end: fn(&Interval) -> &Place| set.iter().any(|interval| end(interval) == end(&all));
        match set {
            set if set.is_all() => Narrowing::Nothing,
            _ if touches(|interval| &interval.low) && touches(|interval| &interval.high) => Narrowing::Wide,
            _ => Narrowing::Narrow,
        }
    }

    fn is_narrow_index(&self) -> bool {
        matches!(self, Self::Index { .. }) && self.narrowing() == Narrowing::Narrow
    }

    fn same_index(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Index { index, .. }, Self::Index { index: other, .. }) => index.keyspace == other.keyspace,
            _ => false,
        }
    }
}
