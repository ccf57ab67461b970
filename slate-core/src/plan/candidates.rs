//! Every access path that could serve a query. None loses a row: what the bounds do not prove, the filter decides.

use std::sync::Arc;

use slate_query::{
    filter::{Exactness, Filter, Term},
    interval::{Interval, IntervalSet},
    path::Path,
    pattern::Direction,
    raw::Doc,
};

use super::{
    IndexBounds, Query,
    access::{Access, AccessPath},
};
use crate::catalog::{CollectionInfo, IndexInfo};

/// What the filter's conjuncts say of single paths.
pub(super) struct Terms<'q> {
    filter: &'q Filter,
    /// The conjunct's place, and one thing it says.
    terms: Vec<(usize, Term)>,
}

impl<'q> Terms<'q> {
    pub(super) fn of(filter: &'q Filter) -> Self {
        let conjuncts = filter.conjuncts().iter().enumerate();
        let terms = conjuncts.flat_map(|(at, node)| node.terms().into_iter().map(move |term| (at, term))).collect();
        Self { filter, terms }
    }

    fn on<'s>(&'s self, path: &'s Path) -> impl Iterator<Item = (usize, &'s Term)> {
        self.terms.iter().filter(move |(_, term)| term.path == *path).map(|(at, term)| (*at, term))
    }
}

/// Every usable access path: the scan first, then `_id`, then the indexes as they were declared.
pub(super) fn candidates(collection: &CollectionInfo, query: &Query) -> Vec<Access> {
    let terms = Terms::of(&query.filter);
    let mut found = vec![Access::scan()];
    found.extend(by_id(&terms));
    for index in collection.indexes.iter().filter(|index| serves(index, &query.filter)) {
        found.extend(by_index(index, &terms));
    }
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
fn by_id(terms: &Terms<'_>) -> Option<Access> {
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
    let points = set.iter().all(|interval| interval.as_point().is_some());
    let path = if points { AccessPath::Points { ids: set } } else { AccessPath::Records { bounds: Some(set) } };
    Some(Access { path, direction: Direction::Ascending, proven: whole(terms, proven) })
}

/// The index without bounds (for its order), and with the bounds that the filter gives. On a path that held arrays two
/// conjuncts may be satisfied by different elements: each gives a candidate of its own there.
fn by_index(index: &Arc<IndexInfo>, terms: &Terms<'_>) -> Vec<Access> {
    let mut found = vec![(IndexBounds::default(), Vec::new())];
    let mut growing = vec![(IndexBounds::default(), Vec::new())];
    for (field, (path, _)) in index.pattern.fields().iter().enumerate() {
        if shares_an_array(index, field) {
            break;
        }
        let choices = choices(index, field, path, terms);
        if choices.is_empty() {
            break;
        }
        let mut grown = Vec::new();
        for (bounds, proven) in &growing {
            for (set, proves) in &choices {
                let mut bounds: IndexBounds = bounds.clone();
                bounds.fields.push(set.clone());
                grown.push((bounds, [&proven[..], proves].concat()));
            }
        }
        // The choices of later fields are few; those of the first are the conjuncts on it.
        growing = grown;
        growing.truncate(MAX_CHOICES);
        // Bounds behind a range are not used: the longer list would repeat the shorter.
        if growing.iter().any(|(bounds, _)| bounds.used() == field + 1) {
            found.truncate(1);
            found.extend(growing.iter().cloned());
        }
        if growing.iter().all(|(bounds, _)| bounds.used() <= field) {
            break;
        }
    }
    let access = |(mut bounds, proven): (IndexBounds, Vec<(usize, usize)>)| {
        let used = bounds.used();
        bounds.fields.truncate(used);
        let proven = proven.into_iter().filter(|(field, _)| *field < used && !index.truncated);
        let proven = whole(terms, proven.map(|(_, at)| at).collect());
        let path = AccessPath::Index { index: Arc::clone(index), bounds };
        Access { path, direction: Direction::Ascending, proven }
    };
    found.into_iter().map(access).collect()
}

/// How many ways to combine the conjuncts on an index's multikey fields are weighed.
const MAX_CHOICES: usize = 16;

/// The sets of intervals that one field may be bound to, each with what it proves: (field, conjunct).
fn choices(
    index: &IndexInfo,
    field: usize,
    path: &Path,
    terms: &Terms<'_>,
) -> Vec<(IntervalSet, Vec<(usize, usize)>)> {
    if index.is_multikey_at(field) {
        let single = |(at, term): (usize, &Term)| {
            let proves = (term.exact == Exactness::Always).then_some((field, at));
            (term.intervals.clone(), proves.into_iter().collect())
        };
        return terms.on(path).filter(|(_, term)| !term.intervals.is_all()).map(single).collect();
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

/// The conjuncts that are proven whole: one that says several things must have each of them proven.
fn whole(terms: &Terms<'_>, mut proven: Vec<usize>) -> Vec<usize> {
    let said = |at: usize| terms.terms.iter().filter(|(conjunct, _)| *conjunct == at).count();
    proven.sort_unstable();
    let counted = |at: usize| proven.iter().filter(|proven| **proven == at).count();
    let mut whole: Vec<usize> = proven.iter().copied().filter(|&at| counted(at) == said(at)).collect();
    whole.dedup();
    debug_assert!(whole.iter().all(|&at| at < terms.filter.conjuncts().len()));
    whole
}

/// How much a set of intervals leaves out, told without looking at the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Narrowing {
    /// Single values, or a stretch of the order.
    Narrow,
    /// All but a stretch: the negation of something.
    Wide,
    /// Everything.
    Nothing,
}

impl AccessPath {
    pub(super) fn narrowing(&self) -> Narrowing {
        let first = match self {
            Self::Points { .. } => return Narrowing::Narrow,
            Self::Records { bounds } => bounds.as_ref(),
            Self::Index { bounds, .. } => bounds.fields.first(),
        };
        let Some(set) = first else { return Narrowing::Nothing };
        let all = Interval::all();
        let touches = |end: fn(&Interval) -> &slate_query::interval::Place| set.iter().any(|i| end(i) == end(&all));
        match set {
            set if set.is_all() => Narrowing::Nothing,
            _ if touches(|interval| &interval.low) && touches(|interval| &interval.high) => Narrowing::Wide,
            _ => Narrowing::Narrow,
        }
    }
}
