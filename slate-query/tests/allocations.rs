//! Parsing a small filter allocates little: the express path parses one for every query. A clone of it allocates nothing. Parsing a large one allocates in
//! proportion to its size.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use bson::{RawDocumentBuf, rawdoc};
use slate_query::{
    expression::Bindings,
    filter::Filter,
    raw::{Doc, OwnedValue},
};

#[track_caller]
fn check(filter: &RawDocumentBuf, allocations: u64) {
    let parse_and_plan = || {
        let parsed = Filter::parse(Doc::from(filter)).unwrap();
        // The query and its plan have the same filter.
        drop((parsed.clone(), parsed));
    };
    assert_eq!(allocation_counter::measure(parse_and_plan).count_total, allocations, "{filter:?}");
}

#[test]
fn small_filters_allocate_their_operators_and_a_shared_list() {
    check(&rawdoc! {}, 0);
    check(&rawdoc! { "a": 5 }, 1);
    check(&rawdoc! { "status": { "$eq": "active" } }, 1);
    check(&rawdoc! { "a": { "$gte": 1, "$lt": 9 }, "b": 7 }, 5);
}

#[test]
fn a_logical_expression_copies_neither_its_operands_per_level_nor_the_variables_per_operand() {
    let bindings = Bindings::new(0).with("x", Some(OwnedValue::from(&bson::Bson::from("x".repeat(10_000))))).unwrap();
    let bytes_of = |levels: usize| {
        let comparison = || bson::Bson::from(bson::doc! { "$eq": ["$a", { "$literal": "y".repeat(10_000) }] });
        let nested = (0..levels).fold(comparison(), |inner, level| {
            let name = if level % 2 == 0 { "$and" } else { "$or" };
            bson::doc! { name: [comparison(), { "$eq": ["$b", "$$x"] }, inner] }.into()
        });
        let filter = RawDocumentBuf::try_from(&bson::doc! { "$expr": nested }).unwrap();
        let parse = || drop(Filter::parse_with(Doc::from(&filter), &bindings).unwrap());
        allocation_counter::measure(parse).bytes_total
    };
    let (few, many) = (bytes_of(10), bytes_of(40));
    assert!(many < 5 * few, "four times the levels take {many} bytes instead of {few}");
}
