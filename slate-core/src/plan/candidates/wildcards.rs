//! The access paths by a wildcard index: by the values at one path, or by the existence of a path.

use std::sync::Arc;

use slate_query::{
    filter::{Exactness, Node, Term, Validity},
    interval::IntervalSet,
    path::Path,
    pattern::{PATH_FIELD, WildcardPattern},
};

use super::{ConjunctTerm, Terms, by_bounds};
use crate::{
    catalog::{IndexInfo, Wildcard},
    plan::{
        Conjuncts,
        access::{Access, AccessPath},
    },
};

/// Most paths of a filter for which a wildcard index is considered.
const MAX_PATHS: usize = 8;

/// Adds the paths by a wildcard index. It has no entry for documents without any of its fields, so it gives no path without bounds.
pub(super) fn by_wildcard(
    index: &Arc<IndexInfo>,
    wildcard: &Wildcard,
    conjuncts: &[Node],
    terms: &Terms,
    found: &mut Vec<Access>,
) {
    let Ok(path_field) = Path::parse(PATH_FIELD) else { return };
    let mut paths: Vec<&Path> = Vec::new();
    for ConjunctTerm { term, .. } in &terms.0 {
        if !paths.contains(&&term.path) && wildcard.pattern.covers(&term.path) && paths.len() < MAX_PATHS {
            paths.push(&term.path);
        }
    }
    let mut served: Vec<&Path> = Vec::new();
    for path in paths {
        let Some(on_path) = index.on_path(wildcard, path) else { continue };
        let before = found.len();
        let at_path =
            ConjunctTerm { term: path_term(&path_field, WildcardPattern::at(path)), conjunct: Conjuncts::default() };
        let terms = Terms(terms.on(path).cloned().chain([at_path]).collect());
        by_bounds(&Arc::new(on_path), &terms, found);
        // Documents with other values have no entry at this path.
        let has_all = |access: &Access| match &access.path {
            AccessPath::Index { bounds, .. } => bounds.fields().get(1).is_some_and(WildcardPattern::has_all),
            _ => false,
        };
        let mut at = 0;
        found.retain(|access| {
            at += 1;
            at <= before || has_all(access)
        });
        if found.len() > before {
            served.push(path);
        }
    }
    for (place, node) in conjuncts.iter().enumerate() {
        let Some((path, exact)) = node.required_path() else { continue };
        if served.contains(&path) || !wildcard.pattern.covers_below(path) {
            continue;
        }
        let Some(on_paths) = index.on_paths() else { continue };
        served.push(path);
        let conjunct = if exact == Exactness::Always { Conjuncts::one(place) } else { Conjuncts::default() };
        let term = path_term(&path_field, WildcardPattern::at_or_below(path));
        by_bounds(&Arc::new(on_paths), &Terms(vec![ConjunctTerm { term, conjunct }]), found);
    }
}

/// Returns the bounds on the paths of entries.
fn path_term(path_field: &Path, intervals: IntervalSet) -> Term {
    Term { path: path_field.clone(), intervals, exact: Exactness::Always, validity: Validity::Always }
}
