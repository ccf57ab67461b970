//! Parsing a small filter allocates little: the express path parses one for every query.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use bson::{RawDocumentBuf, rawdoc};
use slate_query::{filter::Filter, raw::Doc};

#[track_caller]
fn check(filter: &RawDocumentBuf, allocations: u64) {
    let parse = || drop(Filter::parse(Doc::from(filter)).unwrap());
    assert_eq!(allocation_counter::measure(parse).count_total, allocations, "{filter:?}");
}

#[test]
fn small_filters_allocate_their_operators_and_one_list() {
    check(&rawdoc! {}, 0);
    check(&rawdoc! { "a": 5 }, 1);
    check(&rawdoc! { "status": { "$eq": "active" } }, 1);
    check(&rawdoc! { "a": { "$gte": 1, "$lt": 9 }, "b": 7 }, 4);
}
