//! Builds the commands of a case as documents, so that the database's own parser reads the case's arguments.

use bson::{Bson, Document, doc};

use super::case::{Case, Index};

/// Returns the commands that create a case's collections.
pub(crate) fn collections(case: &Case) -> Vec<Document> {
    let command = |(name, documents): &(String, Vec<Bson>)| match documents.as_slice() {
        [] => doc! { "create": name },
        documents => doc! { "insert": name, "documents": documents },
    };
    case.collections.iter().map(command).collect()
}

pub(crate) fn create_index(index: &Index) -> Document {
    let mut spec = doc! { "key": index.keys.clone(), "name": index_name(index) };
    spec.extend(index.options.clone());
    doc! { "createIndexes": &index.collection, "indexes": [spec] }
}

/// Returns a name for an index without one. Indexes on the same keys with different collations need different names.
fn index_name(index: &Index) -> String {
    let keys = index.keys.iter().map(|(path, direction)| format!("{path}_{direction}"));
    let collation = index.options.get("collation").map(|collation| format!("collation {collation}"));
    keys.chain(collation).collect::<Vec<_>>().join("_")
}

/// Returns the name of an index as a hint. Its keys would be ambiguous beside an index with a collation.
pub(crate) fn hint(index: &Index) -> Bson {
    Bson::String(if is_default(&index.keys) { "_id_".into() } else { index_name(index) })
}

/// Returns whether these are the keys of the index that every collection has.
pub(crate) fn is_default(keys: &Document) -> bool {
    keys.keys().eq(["_id"])
}

/// Returns the command of a case. `hint` names the index that it must use.
pub(crate) fn main(case: &Case, hint: Option<&Bson>) -> Option<Document> {
    let options = case.options();
    let mut command = Document::new();
    command.insert(&case.operation, &case.collection);
    match case.operation.as_str() {
        "find" => add(&mut command, case, &[("filter", "filter")]),
        "count" => add(&mut command, case, &[("filter", "query")]),
        "distinct" => add(&mut command, case, &[("key", "key"), ("filter", "query")]),
        "insert" => add(&mut command, case, &[("insert", "documents")]),
        "findAndModify" => add(&mut command, case, &[("filter", "query"), ("update", "update")]),
        "aggregate" => {
            add(&mut command, case, &[("pipeline", "pipeline")]);
            command.insert("cursor", Document::new());
        }
        "update" => {
            let mut statement = Document::new();
            add(&mut statement, case, &[("filter", "q"), ("update", "u")]);
            return Some(statement_command(command, "updates", statement, options, hint));
        }
        "delete" => {
            let mut statement = Document::new();
            add(&mut statement, case, &[("filter", "q")]);
            statement.insert("limit", options.get("limit").cloned().unwrap_or(Bson::Int32(0)));
            return Some(statement_command(command, "deletes", statement, options, hint));
        }
        "bulkWrite" => {
            command.insert("bulkWrite", 1);
            add(&mut command, case, &[("ops", "ops")]);
            command.insert("nsInfo", vec![doc! { "ns": format!("test.{}", case.collection) }]);
        }
        // Operations that Slate does not have.
        _ => return None,
    }
    command.extend(options);
    if let Some(hint) = hint {
        command.insert("hint", hint.clone());
    }
    Some(command)
}

/// Returns the explain command for a case under a hint; for a write, the find of its documents.
pub(crate) fn explain(case: &Case, hint: &Bson) -> Option<Document> {
    let command = if matches!(case.operation.as_str(), "find" | "aggregate" | "count" | "distinct") {
        main(case, Some(hint))?
    } else {
        let mut find = doc! { "find": &case.collection, "hint": hint.clone() };
        add(&mut find, case, &[("filter", "filter")]);
        // They decide whether an index serves the filter.
        find.extend(case.options().into_iter().filter(|(name, _)| name == "collation" || name == "let"));
        find
    };
    Some(doc! { "explain": command, "verbosity": "queryPlanner" })
}

/// Returns an update or delete command with one statement; options belong to the statement, except the command's own.
fn statement_command(
    mut command: Document,
    statements: &str,
    mut statement: Document,
    options: Document,
    hint: Option<&Bson>,
) -> Document {
    let (own, others): (Vec<_>, Vec<_>) = options.into_iter().partition(|(name, _)| name == "let" || name == "ordered");
    statement.extend(others);
    if let Some(hint) = hint {
        statement.insert("hint", hint.clone());
    }
    command.insert(statements, vec![Bson::Document(statement)]);
    command.extend(own);
    command
}

/// Returns the find that checks the effect of a write.
pub(crate) fn after(case: &Case) -> Option<Document> {
    let mut command = doc! { "find": &case.collection };
    command.extend(case.fields.get_document("post_find").ok()?.clone());
    Some(command)
}

/// Returns all documents of a collection in the order of `_id`.
pub(crate) fn everything(case: &Case) -> Document {
    doc! { "find": &case.collection, "sort": { "_id": 1 } }
}

/// Copies fields of the case into the command.
fn add(command: &mut Document, case: &Case, names: &[(&str, &str)]) {
    for (name, argument) in names {
        if let Some(value) = case.fields.get(name) {
            command.insert(*argument, value.clone());
        }
    }
}
