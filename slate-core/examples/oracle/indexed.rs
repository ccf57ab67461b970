//! Chooses indexes for a case's command: one on every path in its filter and sort, and wildcard indexes.

use bson::{Bson, Document, doc};

use super::case::Case;

/// A case with more paths than this does not test indexes.
const MOST: usize = 8;

/// Returns the keys of the indexes to run the case with.
pub(crate) fn candidates(case: &Case) -> Vec<Document> {
    let mut paths = Vec::new();
    if let Ok(filter) = case.fields.get_document("filter") {
        fields(filter, "", &mut paths);
    }
    let stages = case.fields.get_array("pipeline").into_iter().flatten().filter_map(Bson::as_document);
    for stage in stages {
        if let Ok(filter) = stage.get_document("$match") {
            fields(filter, "", &mut paths);
        }
        paths.extend(stage.get_document("$sort").into_iter().flat_map(Document::keys).cloned());
    }
    let options = case.options();
    let sort = options.get_document("sort").cloned().unwrap_or_default();
    paths.extend(sort.keys().cloned());
    let mut candidates: Vec<Document> = Vec::new();
    let mut add = |keys: Document| {
        if !candidates.contains(&keys) && candidates.len() < MOST {
            candidates.push(keys);
        }
    };
    for path in paths.into_iter().filter(|path| is_indexable(path)) {
        add(doc! { path: 1 });
    }
    if sort.len() > 1 && sort.iter().all(|(path, way)| is_indexable(path) && is_direction(way)) {
        add(sort);
    }
    let compound = compound_wildcard(&candidates);
    if !candidates.is_empty() {
        candidates.push(doc! { "$**": 1 });
    }
    candidates.extend(compound);
    candidates
}

/// Returns whether these are the keys of a wildcard index, which does not serve every query.
pub(crate) fn is_wildcard(keys: &Document) -> bool {
    keys.keys().any(|path| path.ends_with("$**"))
}

/// Returns the keys of a wildcard index on everything below the first name of one path, after another path.
fn compound_wildcard(candidates: &[Document]) -> Option<Document> {
    let paths: Vec<&str> = candidates.iter().filter_map(|keys| Some(keys.keys().next()?.as_str())).collect();
    let first_name = |path: &&str| path.split('.').next().unwrap_or_default().to_owned();
    let before = paths.first()?;
    let root = paths.iter().map(first_name).find(|name| *name != first_name(before));
    Some(doc! { *before: 1, format!("{}.$**", root.as_deref().unwrap_or("other")): 1 })
}

/// Returns whether the command supports a hint.
pub(crate) fn takes_hint(case: &Case) -> bool {
    matches!(
        case.operation.as_str(),
        "find" | "aggregate" | "count" | "distinct" | "update" | "delete" | "findAndModify"
    )
}

fn fields(filter: &Document, prefix: &str, paths: &mut Vec<String>) {
    for (name, condition) in filter {
        match condition {
            Bson::Array(branches) if name.starts_with('$') => {
                branches.iter().filter_map(Bson::as_document).for_each(|branch| fields(branch, prefix, paths));
            }
            _ if name.starts_with('$') => {}
            condition => {
                let path = format!("{prefix}{name}");
                if let Some(operators) = condition.as_document() {
                    below(operators, &path, paths);
                }
                paths.push(path);
            }
        }
    }
}

/// Collects the paths within array elements, as in `$elemMatch`.
fn below(operators: &Document, path: &str, paths: &mut Vec<String>) {
    for (operator, argument) in operators {
        match (operator.as_str(), argument) {
            ("$elemMatch", Bson::Document(condition)) => fields(condition, &format!("{path}."), paths),
            ("$not", Bson::Document(operators)) => below(operators, path, paths),
            ("$all", Bson::Array(conditions)) => {
                conditions.iter().filter_map(Bson::as_document).for_each(|condition| below(condition, path, paths));
            }
            _ => {}
        }
    }
}

fn is_indexable(path: &str) -> bool {
    path.split('.').all(|name| !name.is_empty() && !name.starts_with('$')) && !path.contains('\0')
}

fn is_direction(way: &Bson) -> bool {
    matches!(way, Bson::Int32(1 | -1))
}
