//! Updates return what MongoDB returns, and fail where MongoDB fails.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod oracle;

use bson::{Bson, Document, oid::ObjectId};
use slate_query::{
    Error, Refusal,
    expression::Bindings,
    filter::{Filter, Ties},
    raw::{Doc, OwnedValue, validate},
    update::{Context, Update},
};

const NOW: i64 = 1_700_000_000_000;

/// Options of the database, which these tests do not run.
const OTHER_OPTIONS: &[&str] = &["collation", "let", "c", "sort", "fields", "remove", "hint"];

fn option<'a>(case: &'a Document, name: &str) -> Option<&'a Bson> {
    case.get_document("options").ok()?.get(name)
}

fn is_set(case: &Document, name: &str) -> bool {
    matches!(option(case, name), Some(Bson::Boolean(true)))
}

/// A case that uses a variable and does not contain its value.
const INCOMPLETE: &str = "ft:query_and_write/commands/update/test_update_with_expr.py::test_expr_let_in_update";

/// Returns whether the case is an update that needs only a filter and an update.
fn in_reach(case: &Document) -> bool {
    let write = case.get_str("op").is_ok_and(|op| op == "update" || op == "findAndModify");
    let plain = matches!(case.get("filter"), Some(Bson::Document(_)))
        && !matches!(case.get("update"), None | Some(Bson::Null))
        && matches!(option(case, "arrayFilters"), None | Some(Bson::Array(_)));
    let complete = case.get_str("id").unwrap() != INCOMPLETE;
    write && plain && complete && !OTHER_OPTIONS.iter().any(|name| option(case, name).is_some())
}

/// The collection and the counts after a write.
#[derive(Debug, Default)]
struct After {
    docs: Vec<Document>,
    matched: i64,
    modified: i64,
    /// The result of `findAndModify`.
    value: Option<Document>,
}

fn run(case: &Document) -> Result<After, Error> {
    let filter = case.get_document("filter").unwrap().to_vec().unwrap();
    let filter = Filter::parse_with(Doc::new(&filter), &Bindings::default())?;
    let array_filters: Vec<Vec<u8>> = match option(case, "arrayFilters") {
        Some(Bson::Array(filters)) => filters.iter().map(|f| f.as_document().unwrap().to_vec().unwrap()).collect(),
        _ => Vec::new(),
    };
    let array_filters: Vec<Doc<'_>> = array_filters.iter().map(|filter| Doc::new(filter)).collect();
    let update = OwnedValue::from(case.get("update").unwrap());
    let update = Update::parse(update.as_value(), &array_filters, &Bindings::default())?;
    let mut after = After::default();
    for before in case.get_array("docs").unwrap() {
        let mut before = before.as_document().unwrap().clone();
        if !before.contains_key("_id") {
            before.insert("_id", ObjectId::new());
        }
        let bytes = before.to_vec().unwrap();
        let position = filter.positional(Doc::new(&bytes), Ties::First);
        let (Some(position), true) = (position, after.matched == 0 || is_set(case, "multi")) else {
            after.docs.push(before);
            continue;
        };
        after.matched += 1;
        let updated = update.apply(Doc::new(&bytes), &Context::modify(NOW, position))?;
        after.modified += i64::from(updated.is_some());
        let updated = updated.unwrap_or(bytes);
        validate(&updated).unwrap();
        let updated = Document::from_reader(updated.as_slice()).unwrap();
        after.value = Some(if is_set(case, "new") { updated.clone() } else { before });
        after.docs.push(updated);
    }
    if after.matched == 0 && is_set(case, "upsert") {
        let inserted = update.upsert(&filter, &Context::insert(NOW))?;
        validate(&inserted).unwrap();
        let mut inserted = Document::from_reader(inserted.as_slice()).unwrap();
        if !inserted.contains_key("_id") {
            inserted.insert("_id", ObjectId::new());
        }
        after.matched = 1;
        after.value = is_set(case, "new").then(|| inserted.clone());
        after.docs.push(inserted);
    }
    Ok(after)
}

/// Returns a text that is equal for equal documents, with or without the order of fields.
fn text(document: &Document, ordered: bool) -> String {
    fn sort(value: &Bson) -> Bson {
        match value {
            Bson::Document(document) => {
                let mut fields: Vec<_> = document.iter().map(|(name, value)| (name.clone(), sort(value))).collect();
                fields.sort_by(|a, b| a.0.cmp(&b.0));
                Bson::Document(fields.into_iter().collect())
            }
            Bson::Array(elements) => Bson::Array(elements.iter().map(sort).collect()),
            other => other.clone(),
        }
    }
    let document = Bson::Document(document.clone());
    let document = if ordered { document } else { sort(&document) };
    document.into_canonical_extjson().to_string()
}

/// Returns the difference from the case's expectation.
fn difference(case: &Document, after: &After) -> Option<String> {
    let ordered = case.get_str("id").unwrap().starts_with("pg");
    if let Ok(expected) = case.get_array("expected") {
        let filter = case.get_document("post_find").ok().and_then(|find| find.get_document("filter").ok().cloned());
        let filter = filter.unwrap_or_default().to_vec().unwrap();
        let filter = Filter::parse(Doc::new(&filter)).unwrap();
        let found = after.docs.iter().filter(|doc| filter.matches(Doc::new(&doc.to_vec().unwrap())));
        let mut found: Vec<_> = found.map(|doc| text(doc, ordered)).collect();
        let mut expected: Vec<_> = expected.iter().map(|doc| text(doc.as_document().unwrap(), ordered)).collect();
        found.sort_unstable();
        expected.sort_unstable();
        if found != expected {
            return Some(format!("found {found:?}, expected {expected:?}"));
        }
    }
    let reply = case.get_document("expected_reply").cloned().unwrap_or_default();
    let number = |name: &str| reply.get(name).and_then(|n| n.as_i64().or_else(|| n.as_i32().map(i64::from)));
    for (name, count) in [("n", after.matched), ("nModified", after.modified)] {
        if number(name).is_some_and(|expected| expected != count) {
            return Some(format!("{name} is {count}, not {:?}", number(name)));
        }
    }
    match reply.get("value") {
        Some(Bson::Document(expected))
            if after.value.as_ref().is_none_or(|v| text(v, false) != text(expected, false)) =>
        {
            Some(format!("value is {:?}", after.value))
        }
        _ => None,
    }
}

#[test]
fn updated_documents_equal_mongodbs() {
    let (mut passed, mut unsupported, mut failed) = (0, Vec::new(), Vec::new());
    for case in oracle::cases("query-update.jsonl.gz", &[""]).iter().filter(|case| in_reach(case)) {
        if case.get_document("post_find").is_ok_and(|find| find.contains_key("projection")) {
            continue;
        }
        let id = case.get_str("id").unwrap();
        match run(case) {
            Ok(after) => match difference(case, &after) {
                None => passed += 1,
                Some(difference) => failed.push(format!("{id}: {difference}")),
            },
            Err(error) if matches!(error.refusal(), Refusal::Unsupported(_)) => {
                unsupported.push(format!("{id}: {error}"))
            }
            Err(error) if case.get_bool("maybe_error").unwrap_or(false) => drop(error),
            Err(error) => failed.push(format!("{id}: refused: {} {error}", error.code().0)),
        }
    }
    eprintln!("updates: {passed} passed, {} unsupported, {} failed", unsupported.len(), failed.len());
    unsupported.iter().for_each(|case| eprintln!("unsupported: {case}"));
    failed.iter().for_each(|case| eprintln!("FAILED: {case}"));
    assert!(failed.is_empty());
}

#[test]
fn errors_of_updates_equal_mongodbs() {
    let (mut passed, mut failed) = (0, Vec::new());
    for case in oracle::cases("errors-query-update.jsonl.gz", &["operator/update", "query_and_write/commands"]) {
        let expected = match case.get("expected_error") {
            Some(Bson::Int32(code)) => *code,
            Some(Bson::Int64(code)) => i32::try_from(*code).unwrap(),
            other => panic!("a code, not {other:?}"),
        };
        // Duplicate keys are the database's concern; `let` and options are the command's.
        if !in_reach(&case) || matches!(expected, 11000 | 17276 | 40414 | 40415) || is_about_options(&case) {
            continue;
        }
        let id = case.get_str("id").unwrap();
        match run(&case) {
            Err(error) if error.code().0 == expected => passed += 1,
            Err(error) => failed.push(format!("{id}: {} {error}, not {expected}", error.code().0)),
            Ok(after) => failed.push(format!("{id}: accepted, not {expected}: {:?}", after.docs)),
        }
    }
    eprintln!("refusals: {passed} passed, {} failed", failed.len());
    failed.iter().for_each(|case| eprintln!("FAILED: {case}"));
    assert!(failed.is_empty());
}

/// Returns whether the case is about options of the command, of any type.
fn is_about_options(case: &Document) -> bool {
    let of_its_type = |(name, value): (&String, &Bson)| match name.as_str() {
        "upsert" | "multi" | "new" => matches!(value, Bson::Boolean(_)),
        "arrayFilters" => matches!(value, Bson::Array(_)),
        _ => false,
    };
    !case.get_document("options").cloned().unwrap_or_default().iter().all(of_its_type)
}
