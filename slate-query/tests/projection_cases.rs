//! Projections return what MongoDB returns, and fail where MongoDB fails.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod oracle;

use bson::{Bson, Document};
use slate_query::{
    Error, Refusal,
    filter::{Filter, Ties},
    projection::Projection,
    raw::Doc,
};

const AREAS: &[&str] = &[
    "operator/projection",
    "query_and_write/commands/find",
    "documentdb_regress/bson_projection",
    "documentdb_regress/bson_aggregation_pipeline_tests",
    "collation/command_level/operations",
];

/// Returns the case's projection, if it has one and nothing else matters.
fn projection(case: &Document) -> Option<&Document> {
    let options = case.get_document("options").ok()?;
    let other = ["skip", "limit", "collation", "let"].iter().any(|option| options.contains_key(option));
    let find = case.get_str("op").is_ok_and(|op| op == "find") && !other;
    find.then(|| options.get_document("projection").ok()).flatten()
}

fn run(case: &Document, projection: &Document) -> Result<Vec<Document>, Error> {
    let filter = case.get_document("filter").cloned().unwrap_or_default().to_vec().unwrap();
    let filter = if filter.len() == 5 { None } else { Some(Filter::parse(Doc::new(&filter))?) };
    let projection = projection.to_vec().unwrap();
    let projection = Projection::parse(Doc::new(&projection), &slate_query::expression::Bindings::default())?;
    let mut found = Vec::new();
    for document in case.get_array("docs").unwrap() {
        let document = document.as_document().unwrap().to_vec().unwrap();
        let matched = filter.as_ref().map_or(Some(None), |filter| filter.positional(Doc::new(&document), Ties::Last));
        let Some(position) = matched else { continue };
        let mut out = b"left over from before".to_vec();
        projection.apply(Doc::new(&document), position, &mut out)?;
        slate_query::raw::validate(&out).unwrap();
        found.push(Document::from_reader(out.as_slice()).unwrap());
    }
    Ok(found)
}

fn sorted(documents: impl IntoIterator<Item = Bson>) -> Vec<String> {
    let mut texts: Vec<_> = documents.into_iter().map(|doc| doc.into_canonical_extjson().to_string()).collect();
    texts.sort_unstable();
    texts
}

/// Computed fields can be at other positions: the cases do not compare their order.
fn same_but_for_order(found: &[Document], expected: &[Bson]) -> bool {
    let ordered = |document: &Document| {
        let mut fields: Vec<_> = document.clone().into_iter().collect();
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        Bson::Document(fields.into_iter().collect())
    };
    sorted(found.iter().map(ordered)) == sorted(expected.iter().map(|doc| ordered(doc.as_document().unwrap())))
}

#[test]
fn projected_documents_equal_mongodbs() {
    let (mut passed, mut unsupported, mut failed) = (0, Vec::new(), Vec::new());
    for case in oracle::cases("query-update.jsonl.gz", AREAS) {
        let Some(projection) = projection(&case) else { continue };
        let id = case.get_str("id").unwrap().to_owned();
        match run(&case, projection) {
            Ok(found) if same_but_for_order(&found, case.get_array("expected").unwrap()) => passed += 1,
            Err(error) if matches!(error.refusal(), Refusal::Unsupported(_)) => {
                unsupported.push(format!("{id}: {error}"))
            }
            other => failed.push((id, other)),
        }
    }
    println!("passed {passed}, unsupported {}: {unsupported:#?}", unsupported.len());
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn invalid_projections_fail_with_mongodbs_codes() {
    let mut failed = Vec::new();
    let mut unsupported = Vec::new();
    for case in oracle::cases("errors-query-update.jsonl.gz", AREAS) {
        let Some(projection) = projection(&case) else { continue };
        let id = case.get_str("id").unwrap().to_owned();
        let expected = case.get_i32("expected_error").unwrap();
        match run(&case, projection) {
            Err(error) if error.code().0 == expected => {}
            Err(error) if matches!(error.refusal(), Refusal::Unsupported(_)) => {
                unsupported.push(format!("{id}: {error}"))
            }
            other => failed.push((id, expected, other)),
        }
    }
    println!("unsupported {}: {unsupported:#?}", unsupported.len());
    assert!(failed.is_empty(), "{failed:#?}");
}
