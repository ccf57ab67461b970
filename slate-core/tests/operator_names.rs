//! [`OperatorKind::names`] lists operators that are supported.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use bson::{Bson, Document, bson, doc};
use slate_core::{Database, OperatorKind, Result};

/// Returns the uses of an operator. One of them must be refused for no other reason than its argument, or succeed.
fn uses(kind: OperatorKind, name: &str) -> Vec<Result<()>> {
    let collection = Database::open("memory:").unwrap().collection::<Document>("c");
    collection.insert_one(&doc! { "a": [1] }).unwrap();
    let find = |filter: Document| collection.find(filter).run().map(drop);
    let update = |update: Document| collection.update_one(doc! {}, update).run().map(drop);
    let aggregate = |stage: Document| collection.aggregate([stage]).run().map(drop);
    let window =
        |argument: Bson| doc! { "$setWindowFields": { "sortBy": { "a": 1 }, "output": { "b": { name: argument } } } };
    match kind {
        OperatorKind::Filter => vec![find(doc! { name: 1 }), find(doc! { "a": { name: 1 } })],
        OperatorKind::Update => {
            let each = doc! { "$push": { "a": { "$each": [], name: bson!([]) } } };
            vec![update(doc! { name: { "a": 1 } }), update(each)]
        }
        OperatorKind::Stage => vec![aggregate(doc! { name: 1 })],
        OperatorKind::Expression => vec![aggregate(doc! { "$project": { "b": { name: 1 } } })],
        OperatorKind::Accumulator => vec![aggregate(doc! { "$group": { "_id": 1, "a": { name: 1 } } })],
        OperatorKind::WindowFunction => vec![aggregate(window(bson!({}))), aggregate(window(bson!(1)))],
        other => unreachable!("{other:?} has no use here"),
    }
}

#[test]
fn every_name_is_supported() {
    for kind in OperatorKind::ALL {
        assert!(!kind.names().is_empty(), "{kind:?}");
        for name in kind.names() {
            let refused = |error: slate_core::Error| {
                let message = error.to_string().to_lowercase();
                let unknown = ["unknown", "unrecognized", "not supported", "not a window function"];
                unknown.iter().any(|word| message.contains(word)).then_some(message)
            };
            let refusals: Vec<_> = uses(kind, name).into_iter().map(|result| result.err().and_then(refused)).collect();
            assert!(refusals.contains(&None), "{kind:?} {name}: {refusals:?}");
        }
    }
}

#[test]
fn unsupported_operators_are_not_listed() {
    for (kind, name) in [
        (OperatorKind::Filter, "$where"),
        (OperatorKind::Filter, "$geoWithin"),
        (OperatorKind::Stage, "$changeStream"),
        (OperatorKind::Expression, "$function"),
        (OperatorKind::Accumulator, "$accumulator"),
    ] {
        assert!(!kind.names().contains(name), "{name}");
    }
}
