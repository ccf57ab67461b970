//! Filters match what MongoDB matches, and fail where MongoDB fails.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod oracle;

use bson::{Bson, Document};
use slate_query::{
    Error, Refusal,
    expression::Bindings,
    filter::{Filter, Ties},
    raw::Doc,
};

const AREAS: &[&str] = &[
    "operator/query",
    "query_and_write/commands",
    "aggregation/commands/count",
    "data-types",
    "documentdb_regress",
    "indexes",
];

/// Returns the case's filter, if its expectation depends on nothing else.
fn filter_of(case: &Document) -> Option<Vec<u8>> {
    let plain = |option: &str| case.get_document("options").is_ok_and(|options| options.contains_key(option));
    if ["skip", "limit", "collation", "let", "min", "max", "returnKey"].into_iter().any(plain) {
        return None;
    }
    match case.get_str("op").unwrap() {
        "find" | "count" => Some(case.get_document("filter").cloned().unwrap_or_default().to_vec().unwrap()),
        _ => None,
    }
}

/// Returns the case's documents without those whose `_id` is invalid, which some sources contain.
fn documents(case: &Document, repeated: Repeated) -> Vec<&Document> {
    let mut ids = Vec::new();
    let documents = case.get_array("docs").unwrap().iter().map(|document| document.as_document().unwrap());
    documents
        .filter(|document| match document.get("_id") {
            Some(id) if ids.contains(&id) => repeated == Repeated::Kept,
            Some(id) => {
                ids.push(id);
                true
            }
            None => true,
        })
        .collect()
}

#[derive(Clone, Copy, PartialEq)]
enum Repeated {
    Kept,
    Refused,
}

/// Cases with a different result in Slate: regular expressions that need PCRE, and one case whose source meant a
/// regular expression by `{$regex: …}` inside `$all`, where MongoDB rejects the operator.
fn differs_by_decision(id: &str, error: &Error) -> bool {
    error.code().0 == 51091 && error.message().ends_with("is not supported")
        || id == "pg:bson_index_truncation_index_tests:4234"
}

/// Returns the matching documents.
fn run<'c>(documents: &[&'c Document], filter: &[u8]) -> Result<Vec<&'c Document>, Error> {
    let filter = Filter::parse_with(Doc::new(filter), &Bindings::default())?;
    let matched = documents.iter().filter(|document| {
        let bytes = document.to_vec().unwrap();
        let matches = filter.matches(Doc::new(&bytes));
        assert_eq!(filter.positional(Doc::new(&bytes), Ties::First).is_some(), matches);
        matches
    });
    Ok(matched.copied().collect())
}

/// Compares the documents with the expected ones: by number for a count, by `_id` if all have one.
fn as_expected(case: &Document, found: &[&Document]) -> Option<bool> {
    let expected = case.get_array("expected").ok()?;
    if case.get_str("op").unwrap() == "count" {
        let count = expected.first().map(|count| count.as_i64().or(count.as_i32().map(i64::from)).unwrap());
        return Some(count.and_then(|count| usize::try_from(count).ok()) == Some(found.len()));
    }
    let id = |document: &Document| document.get("_id").map(text);
    let expected_ids: Option<Vec<String>> =
        expected.iter().map(|document| document.as_document().and_then(id)).collect();
    let found_ids: Option<Vec<String>> = found.iter().map(|document| id(document)).collect();
    match (expected_ids, found_ids) {
        (Some(mut expected), Some(mut found)) => {
            expected.sort_unstable();
            found.sort_unstable();
            Some(expected == found)
        }
        _ => Some(expected.len() == found.len()),
    }
}

fn text(value: &Bson) -> String {
    value.clone().into_canonical_extjson().to_string()
}

#[test]
fn filters_match_what_mongodb_matches() {
    let (mut right, mut unsupported, mut otherwise, mut wrong) = (0, 0, 0, Vec::new());
    for case in oracle::cases("query-update.jsonl.gz", AREAS) {
        let Some(filter) = filter_of(&case) else { continue };
        let outcome: Result<Option<bool>, Error> =
            [Repeated::Refused, Repeated::Kept].into_iter().try_fold(Some(false), |right, repeated| {
                let found = run(&documents(&case, repeated), &filter)?;
                Ok(if right == Some(true) { right } else { as_expected(&case, &found) })
            });
        match outcome {
            Ok(Some(true)) => right += 1,
            Ok(Some(false)) => {
                wrong.push(format!("{}: {}", case.get_str("id").unwrap(), case.get("filter").unwrap_or(&Bson::Null)))
            }
            Ok(None) => {}
            Err(error) if matches!(error.refusal(), Refusal::Unsupported(_)) => unsupported += 1,
            Err(error) if differs_by_decision(case.get_str("id").unwrap(), &error) => otherwise += 1,
            Err(error) => {
                wrong.push(format!("{}: {} {error}", case.get_str("id").unwrap(), case.get("filter").unwrap()))
            }
        }
    }
    eprintln!(
        "filters: {right} right, {unsupported} unsupported, {otherwise} different by design, {} wrong",
        wrong.len()
    );
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn invalid_filters_fail_as_in_mongodb() {
    let (mut right, mut unsupported, mut wrong) = (0, 0, Vec::new());
    for case in oracle::cases("errors-query-update.jsonl.gz", &["operator/query", "aggregation/commands"]) {
        let only_filter = case.get_document("options").map_or(true, Document::is_empty);
        let Ok(filter) = case.get_document("filter") else { continue };
        if !only_filter || filter.is_empty() {
            continue;
        }
        let expected = case.get("expected_error").and_then(|code| code.as_i64().or(code.as_i32().map(i64::from)));
        match Filter::parse_with(Doc::new(&filter.to_vec().unwrap()), &Bindings::default()) {
            Err(error) if Some(i64::from(error.code().0)) == expected => right += 1,
            Err(error) if matches!(error.refusal(), Refusal::Unsupported(_)) => unsupported += 1,
            outcome => {
                wrong.push(format!("{}: {filter} expects {expected:?}: {outcome:?}", case.get_str("id").unwrap()))
            }
        }
    }
    eprintln!("refusals: {right} right, {unsupported} unsupported, {} wrong", wrong.len());
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
