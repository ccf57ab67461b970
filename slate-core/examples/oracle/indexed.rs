//! Which indexes a case's command could use: one on every path that its filter and its sort name.

use bson::{Bson, Document, doc};

use super::case::Case;

/// More paths than this are named by no case that means to ask something of indexes.
const MOST: usize = 8;

/// The keys of indexes to run the case with.
pub(crate) fn candidates(case: &Case) -> Vec<Document> {
    let mut paths = Vec::new();
    if let Ok(filter) = case.fields.get_document("filter") {
        fields(filter, "", &mut paths);
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
    candidates
}

/// Whether the command takes a hint.
pub(crate) fn takes_hint(case: &Case) -> bool {
    matches!(case.operation.as_str(), "find" | "count" | "distinct" | "update" | "delete" | "findAndModify")
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

/// Paths within arrays' elements, as `$elemMatch` names them.
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
