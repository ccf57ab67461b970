//! Sorts in cases of other suites: the order of results, and errors.

#![expect(clippy::unwrap_used, clippy::panic, reason = "in helpers of tests, too, a panic is the failure")]

mod oracle;

use bson::{Bson, Document};
use slate_query::{
    filter::Filter,
    number::Number,
    raw::{Doc, OwnedValue},
    sort::Sort,
};

fn raw(document: &Document) -> Vec<u8> {
    document.to_vec().unwrap()
}

/// Returns the sort, if the case contains nothing but a filter and a sort.
fn sort_of(case: &Document) -> Option<Document> {
    if let Ok(pipeline) = case.get_array("pipeline") {
        let [Bson::Document(stage)] = &pipeline[..] else { return None };
        return stage.get_document("$sort").ok().cloned();
    }
    let options = case.get_document("options").ok()?;
    let plain = options.keys().all(|option| matches!(option.as_str(), "sort" | "skip" | "limit"));
    (plain && case.get_str("op").is_ok_and(|op| op == "find"))
        .then(|| options.get_document("sort").ok().cloned())
        .flatten()
}

fn number(case: &Document, option: &str) -> usize {
    let value = case.get_document("options").ok().and_then(|options| options.get(option));
    let number = value.and_then(|value| Number::of(OwnedValue::from(value).as_value()));
    number.and_then(Number::to_i64).map_or(0, |number| usize::try_from(number.unsigned_abs()).unwrap())
}

fn answer<'c>(case: &'c Document, sort: &Sort) -> Option<Vec<&'c Document>> {
    let filter = case.get_document("filter").cloned().unwrap_or_default();
    let filter = Filter::parse(Doc::new(&raw(&filter))).ok()?;
    let mut rows: Vec<(Vec<u8>, &Document)> = Vec::new();
    for document in case.get_array("docs").unwrap() {
        let document = document.as_document().unwrap();
        let bytes = raw(document);
        if filter.matches(Doc::new(&bytes)) {
            let mut key = Vec::new();
            sort.key(Doc::new(&bytes), &mut key).ok()?;
            rows.push((key, document));
        }
    }
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    let limit = match number(case, "limit") {
        0 => usize::MAX,
        limit => limit,
    };
    Some(rows.into_iter().map(|(_, document)| document).skip(number(case, "skip")).take(limit).collect())
}

#[test]
fn sorted_results_are_in_mongodb_s_order() {
    let (mut checked, mut wrong) = (0, Vec::new());
    for file in ["query-update.jsonl.gz", "aggregate.jsonl.gz"] {
        for case in oracle::cases(file, &[""]) {
            if case.get_str("area").unwrap().starts_with("collation") {
                continue;
            }
            if !case.get_str("order").is_ok_and(|order| order == "sorted") {
                continue;
            }
            let Some(sort) = sort_of(&case) else { continue };
            let Ok(sort) = Sort::parse(Doc::new(&raw(&sort))) else { continue };
            let Some(answer) = answer(&case, &sort) else { continue };
            checked += 1;
            let ids = |documents: Vec<&Document>| -> Vec<String> {
                documents.into_iter().map(|document| format!("{:?}", document.get("_id"))).collect()
            };
            let expected = case.get_array("expected").unwrap().iter().filter_map(Bson::as_document).collect();
            let (expected, found) = (ids(expected), ids(answer));
            if expected != found {
                wrong.push(format!("{}: expected {expected:?}, found {found:?}", case.get_str("id").unwrap()));
            }
        }
    }
    eprintln!("{checked} sorts checked");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn invalid_sorts_fail_with_mongodb_s_codes() {
    for case in oracle::cases("errors-aggregate.jsonl.gz", &["operator/stages/sort"]) {
        let Some(sort) = sort_of(&case) else { continue };
        let expected = case
            .get("expected_error")
            .and_then(Bson::as_i32)
            .or_else(|| case.get("expected_error").and_then(Bson::as_i64).and_then(|code| i32::try_from(code).ok()));
        let error = Sort::parse(Doc::new(&raw(&sort))).expect_err(&sort.to_string());
        assert_eq!(Some(error.code().0), expected, "{sort}");
    }
}
