//! The access paths by a wildcard index: by the values at one path, by the existence of a path, or by the other fields.

use std::sync::Arc;

use slate_query::{
    filter::{Exactness, Node, Term, Validity},
    interval::IntervalSet,
    path::Path,
    wildcard::{PATH_FIELD, WildcardPattern},
};

use super::{ConjunctTerm, Terms, bounded, by_bounds, combined};
use crate::{
    catalog::{IndexInfo, Wildcard},
    plan::{
        Conjuncts, IndexBounds,
        access::{Access, AccessPath},
    },
};

/// Maximum number of a filter's paths that are considered by their values. Together with paths by existence, at most twice as many are.
const MAX_PATHS: usize = 8;

/// Adds the access paths by a wildcard index. Each reads one part of the index, selected by bounds on the path
/// field of the entries.
pub(super) fn by_wildcard(
    index: &Arc<IndexInfo>,
    wildcard: &Wildcard,
    conjuncts: &[Node],
    terms: &Terms<'_>,
    found: &mut Vec<Access>,
) {
    let Ok(path_field) = Path::parse(PATH_FIELD) else { return };
    let mut paths: Vec<&Path> = Vec::new();
    for ConjunctTerm { term, .. } in &terms.terms {
        if paths.len() == MAX_PATHS {
            break;
        }
        if !paths.contains(&&term.path) && wildcard.pattern.covers(&term.path) {
            paths.push(&term.path);
        }
    }
    let mut part = PartTerms::new(terms, path_field);
    let mut served: Vec<&Path> = Vec::new();
    for path in paths {
        let Some(on_path) = index.on_path(wildcard, path) else { continue };
        let field = 1 + wildcard.pattern.before();
        // Otherwise a matching document without an entry at this path would be missed.
        if !requires_entry(&on_path, field, terms) {
            continue;
        }
        let has_all = |access: &Access| match &access.path {
            AccessPath::Index { bounds, .. } => bounds.fields().get(field).is_none_or(WildcardPattern::has_all),
            _ => false,
        };
        let before = found.len();
        by_bounds(&Arc::new(on_path), part.at(WildcardPattern::at(path)), found);
        let added = found.split_off(before);
        found.extend(added.into_iter().filter(has_all));
        served.push(path);
    }
    for (place, node) in conjuncts.iter().enumerate() {
        if served.len() == 2 * MAX_PATHS {
            break;
        }
        let Some((path, exact)) = node.required_path() else { continue };
        if served.contains(&path) || !wildcard.pattern.covers_below(path) {
            continue;
        }
        let Some(on_paths) = index.on_paths() else { continue };
        served.push(path);
        let conjunct = if exact == Exactness::Always { Conjuncts::one(place) } else { Conjuncts::default() };
        by_bounds(&Arc::new(on_paths), part.exact_at(WildcardPattern::at_or_below(path), conjunct), found);
    }
    if let Some(on_others) = index.on_others(wildcard) {
        by_others(&Arc::new(on_others), part.at(WildcardPattern::at_no_path()), found);
    }
}

/// Adds the access paths by the entries of the other fields, as for an index on these fields: a path for its order, and
/// paths with bounds from the filter.
fn by_others(on_others: &Arc<IndexInfo>, terms: &Terms<'_>, found: &mut Vec<Access>) {
    let all = IndexBounds::new(on_others, vec![WildcardPattern::at_no_path()]);
    found.push(bounded(on_others, all, Conjuncts::default(), terms));
    let before = found.len();
    by_bounds(on_others, terms, found);
    let added = found.split_off(before);
    found.extend(added.into_iter().filter(|access| access.path.first_bounds().is_some()));
}

/// Returns whether every document that satisfies the terms on this field, a path of the wildcard, has an entry at that path.
fn requires_entry(on_path: &IndexInfo, field: usize, terms: &Terms<'_>) -> bool {
    let Some((path, _)) = on_path.pattern.fields().get(field) else { return false };
    if on_path.is_multikey_at(field) {
        let holds = |term: &Term| term.validity == Validity::Always && WildcardPattern::has_all(&term.intervals);
        terms.on(path).any(|term| holds(&term.term))
    } else {
        combined(terms.on(path)).is_some_and(|(values, _)| WildcardPattern::has_all(&values))
    }
}

/// The terms of a filter, and a term on the path of entries, which is different for each part of an index.
struct PartTerms<'c>(Terms<'c>);

impl<'c> PartTerms<'c> {
    fn new(terms: &Terms<'c>, path_field: Path) -> Self {
        let term = Term {
            path: path_field,
            intervals: IntervalSet::default(),
            exact: Exactness::Always,
            validity: Validity::Always,
        };
        let of_part = ConjunctTerm { term, conjunct: Conjuncts::default() };
        let conjuncts = terms.conjuncts;
        Self(Terms { terms: terms.terms.iter().cloned().chain([of_part]).collect(), conjuncts })
    }

    /// Returns the terms for the part at these paths.
    fn at(&mut self, paths: IntervalSet) -> &Terms<'c> {
        self.exact_at(paths, Conjuncts::default())
    }

    /// Like [`PartTerms::at`], where every document with an entry at these paths satisfies the conjunct.
    fn exact_at(&mut self, paths: IntervalSet, conjunct: Conjuncts) -> &Terms<'c> {
        if let Some(of_part) = self.0.terms.last_mut() {
            of_part.term.intervals = paths;
            of_part.conjunct = conjunct;
        }
        &self.0
    }
}
