//! Documents that nest deeper than allowed are refused by every call, on the stacks that threads usually have.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::mem::ManuallyDrop;

use bson::{Bson, Document, RawDocumentBuf, doc, rawdoc};
use common::Store;
use slate_core::{Collection, Database, Index, Result, Validator, View, WriteOperation};

/// What documents are nested in.
#[derive(Clone, Copy, Debug)]
enum Nest {
    Documents,
    Arrays,
    Scopes,
    /// Documents whose names are those of operators, or of extended JSON.
    Operators,
}

const NESTS: [Nest; 4] = [Nest::Documents, Nest::Arrays, Nest::Scopes, Nest::Operators];

/// The stack of a thread by default.
const USUAL_STACK: usize = 2 << 20;

/// The stack of a thread of some services.
const SMALL_STACK: usize = 512 << 10;

fn int(int: usize) -> [u8; 4] {
    i32::try_from(int).unwrap().to_le_bytes()
}

/// Returns a document of one field, whose value nests in `levels` documents, arrays or scopes. The outermost document is not
/// counted.
fn nested(field: &str, nest: Nest, levels: usize) -> RawDocumentBuf {
    // Each level in front of the next: its head without the length, which depends on what is inside.
    let (kind, inner_name): (u8, &[u8]) = match nest {
        Nest::Documents => (3, b"a\0"),
        Nest::Arrays => (4, b"0\0"),
        Nest::Scopes => (15, b"a\0"),
        Nest::Operators => (3, b"$not\0"),
    };
    // Of code with scope: its length, the empty code.
    let before = if matches!(nest, Nest::Scopes) { 4 + 5 } else { 0 };
    let around = 4 + 1 + inner_name.len() + before + 1;
    let mut bytes = Vec::new();
    let empty = 5;
    let value = |levels: usize| empty + (levels - 1) * around;
    bytes.extend_from_slice(&int(4 + 1 + field.len() + 1 + before + value(levels) + 1));
    bytes.push(kind);
    bytes.extend_from_slice(field.as_bytes());
    bytes.push(0);
    for left in (1..=levels).rev() {
        if before > 0 {
            bytes.extend_from_slice(&int(before + value(left)));
            bytes.extend_from_slice(&[1, 0, 0, 0, 0]);
        }
        bytes.extend_from_slice(&int(value(left)));
        if left > 1 {
            bytes.push(kind);
            bytes.extend_from_slice(inner_name);
        }
    }
    bytes.extend_from_slice(&vec![0; levels + 1]);
    RawDocumentBuf::from_bytes(bytes).unwrap()
}

type Call<'c> = (&'static str, Box<dyn Fn(&RawDocumentBuf) -> Result<()> + 'c>);

fn call<'c, R>(name: &'static str, call: impl Fn(&RawDocumentBuf) -> Result<R> + 'c) -> Call<'c> {
    (name, Box::new(move |document| call(document).map(drop)))
}

/// Returns the calls that take a document, each with it in every place.
fn calls<'c>(db: &'c Database, c: &'c Collection<RawDocumentBuf>) -> Vec<Call<'c>> {
    let one = || doc! { "_id": 1 };
    let set = |document: &RawDocumentBuf| rawdoc! { "$set": { "x": document.clone() } };
    vec![
        call("insert_one", |d| c.insert_one(d)),
        call("insert_many", |d| c.insert_many(&[rawdoc! {}, d.clone()]).all_or_nothing().run()),
        call("upsert_many", |d| c.upsert_many(std::slice::from_ref(d))),
        call("merge_many", |d| c.merge_many([d.clone()])),
        call("replace_one", move |d| c.replace_one(one(), d).upsert().run()),
        call("find_one_and_replace", move |d| c.find_one_and_replace(one(), d).run()),
        call("bulk_write", |d| c.bulk_write([WriteOperation::insert_one(d.clone())]).run()?.into_result()),
        call("find", |d| c.find(d.clone()).run().map(Iterator::count)),
        call("find by a value", |d| c.find(rawdoc! { "x": { "$in": [d.clone()] } }).run().map(Iterator::count)),
        call("find by an expression", |d| {
            c.find(rawdoc! { "$expr": { "$eq": ["$x", { "$literal": d.clone() }] } }).run().map(Iterator::count)
        }),
        call("projection", |d| c.find(doc! {}).projection(d.clone()).run().map(Iterator::count)),
        call("sort", |d| c.find(doc! {}).sort(d.clone()).run().map(Iterator::count)),
        call("let", |d| c.find(doc! {}).let_variables(d.clone()).run().map(Iterator::count)),
        call("collation", |d| c.find(doc! {}).collation(d.clone()).run().map(Iterator::count)),
        call("count", |d| c.count_documents(d.clone()).run()),
        call("distinct", |d| c.distinct("a", d.clone()).run()),
        call("delete_many", |d| c.delete_many(d.clone()).run()),
        call("update_one", move |d| c.update_one(one(), set(d)).run()),
        call("update by a filter", |d| c.update_one(d.clone(), doc! { "$set": { "x": 1 } }).upsert().run()),
        call("update by a pipeline", move |d| c.update_one(one(), [set(d)]).run()),
        call("array filters", move |d| {
            c.update_one(one(), doc! { "$set": { "x.$[a]": 1 } }).array_filters([d.clone()]).run()
        }),
        call("aggregate", |d| c.aggregate([rawdoc! { "$match": d.clone() }]).run().map(Iterator::count)),
        call("aggregate, computed", move |d| c.aggregate([set(d)]).run().map(Iterator::count)),
        call("documents", |d| db.aggregate([rawdoc! { "$documents": [d.clone()] }]).run().map(Iterator::count)),
        call("create_index", |d| c.create_index(Index::on(d.clone())).run()),
        call("create_index, partial", |d| c.create_index(Index::on(doc! { "y": 1 }).only(d.clone())).run()),
        call("set_validator", |d| c.set_validator(Some(Validator::new(d.clone())))),
        call("command insert", |d| {
            let reply = db.command(&rawdoc! { "insert": "c", "documents": [d.clone()] })?;
            match reply.get("writeErrors") {
                Ok(Some(_)) => c.insert_one(d).map(drop),
                _ => Ok(()),
            }
        }),
        call("command find", |d| db.command(&rawdoc! { "find": "c", "filter": d.clone() })),
        call("command update", |d| db.command(&rawdoc! { "update": "c", "updates": [{ "q": {}, "u": d.clone() }] })),
        call("command", |d| db.command(d)),
        call("comment", |d| db.command(&rawdoc! { "find": "c", "comment": d.clone() })),
        call("comment of what is explained", |d| {
            db.command(&rawdoc! { "explain": { "find": "c", "comment": { "x": d.clone() } } })
        }),
        call("comment of an aggregate that is explained", |d| {
            let aggregate = rawdoc! { "aggregate": "c", "pipeline": [], "explain": true, "comment": [d.clone()] };
            db.command(&aggregate)
        }),
    ]
}

/// Returns a stage whose field is a pipeline of one such stage, and so on.
fn nested_stages(stage: &str, field: &str, levels: usize) -> RawDocumentBuf {
    let names = [(3, stage), (4, field), (3, "0")];
    let containers = names.iter().cycle().take(3 * levels);
    let around = |name: &str| 4 + 1 + name.len() + 1 + 1;
    let mut length = 5 + containers.clone().map(|(_, name)| around(name)).sum::<usize>();
    let mut bytes = Vec::with_capacity(length);
    for (kind, name) in containers {
        bytes.extend_from_slice(&int(length));
        bytes.push(*kind);
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(0);
        length -= around(name);
    }
    bytes.extend_from_slice(&int(length));
    bytes.extend_from_slice(&vec![0; 3 * levels + 1]);
    RawDocumentBuf::from_bytes(bytes).unwrap()
}

fn on_stack(stack: usize, test: impl Fn() + Send + Sync) {
    std::thread::scope(|scope| {
        std::thread::Builder::new().stack_size(stack).spawn_scoped(scope, test).unwrap().join().unwrap();
    });
}

#[test]
fn deep_documents_are_refused_by_every_call() {
    // A build without optimization has frames that are several times as large.
    on_stack(USUAL_STACK, || {
        let test = Store::Memory.open();
        let c = test.collection("c");
        c.insert_one(&rawdoc! { "_id": 1, "x": [1] }).unwrap();
        for (name, call) in calls(&test.db, &c) {
            for nest in NESTS {
                for field in ["_id", "a", "$set"] {
                    // Allowed by some calls: their recursion must fit the stack, too.
                    drop(call(&nested(field, nest, 170)));
                    c.set_validator(None).unwrap();
                    drop(test.db.command(&rawdoc! { "dropIndexes": "c", "index": "*" }));
                    for levels in [200, 7_500, 100_000] {
                        let refused = call(&nested(field, nest, levels));
                        assert!(refused.is_err(), "{name}: {nest:?}, {levels} deep in {field}");
                    }
                }
            }
        }
        assert!(c.verify().run().unwrap().is_sound());
    });
}

#[test]
fn deep_pipelines_are_refused_before_their_names_are_replaced() {
    on_stack(SMALL_STACK, || {
        let test = Store::Memory.open();
        let (db, c) = (&test.db, test.collection("c"));
        for (stage, field) in
            [("$facet", "a"), ("$lookup", "pipeline"), ("$unionWith", "pipeline"), ("$merge", "whenMatched")]
        {
            // The stages within 58 levels are valid BSON, and are refused for another reason.
            let shallow =
                rawdoc! { "aggregate": "c", "pipeline": [nested_stages(stage, field, 58)], "cursor": {}, "$db": "x" };
            assert_ne!(db.command(&shallow).unwrap_err().code(), 15, "{stage}");
            let stage = nested_stages(stage, field, 50_000);
            let codes = [
                db.command(&rawdoc! { "aggregate": "c", "pipeline": [stage.clone()], "cursor": {}, "$db": "x" }),
                db.command(&rawdoc! { "ping": 1, "pipeline": [stage.clone()], "$db": "x" }),
                db.command(&rawdoc! { "create": "v", "viewOn": "c", "pipeline": [stage.clone()], "$db": "x" }),
                db.command(&rawdoc! { "explain": { "aggregate": "c", "pipeline": [stage.clone()], "$db": "x" } }),
            ];
            for reply in codes {
                assert_eq!(reply.unwrap_err().code(), 15);
            }
            assert_eq!(c.aggregate([stage.clone()]).run().unwrap_err().code(), 15);
            assert_eq!(db.aggregate([stage.clone()]).run().unwrap_err().code(), 15);
            assert_eq!(c.watch([stage.clone()]).run().unwrap_err().code(), 15);
            assert_eq!(test.collection("v").set_view(&View::new("c", [stage.clone()])).unwrap_err().code(), 15);
        }
    });
}

#[test]
fn a_deep_id_is_refused_as_a_deep_field_is() {
    let test = Store::Memory.open();
    let c = test.collection("c");
    for nest in NESTS {
        for field in ["_id", "a"] {
            for levels in [180, 400, 100_000] {
                let document = nested(field, nest, levels);
                let error = c.insert_one(&document).unwrap_err();
                assert_eq!(error.code(), 15, "{nest:?}, {levels} deep in {field}: {error}");
            }
        }
    }
    c.insert_one(&nested("a", Nest::Documents, 179)).unwrap();
    c.insert_one(&nested("_id", Nest::Documents, 179)).unwrap();
}

#[test]
fn deep_documents_are_refused_on_a_small_stack() {
    on_stack(SMALL_STACK, || {
        let test = Store::Memory.open();
        let c = test.collection("c");
        for (name, call) in calls(&test.db, &c) {
            for (nest, field) in [(Nest::Documents, "_id"), (Nest::Scopes, "_id"), (Nest::Documents, "a")] {
                assert!(call(&nested(field, nest, 50_000)).is_err(), "{name}: {nest:?} in {field}");
            }
        }
    });
}

/// A document of the `bson` crate is dropped level by level too, which a deep one does not survive: it is leaked.
fn deep_document(levels: usize) -> ManuallyDrop<Document> {
    ManuallyDrop::new((1..levels).fold(doc! {}, |inner, _| {
        let mut outer = Document::new();
        outer.insert("a", Bson::Document(inner));
        outer
    }))
}

#[test]
fn deep_values_of_the_caller_are_refused() {
    on_stack(USUAL_STACK, || {
        let test = Store::Memory.open();
        let (raw, typed) = (test.collection("c"), test.db.collection::<Document>("c"));
        for levels in [181, 100_000] {
            let deep = deep_document(levels);
            let deep: &Document = &deep;
            assert_eq!(typed.insert_one(deep).unwrap_err().code(), 15, "{levels}");
            assert_eq!(raw.find(deep).run().map(Iterator::count).unwrap_err().code(), 15, "{levels}");
        }
        typed.insert_one(&deep_document(180)).unwrap();
        assert_eq!(typed.find_one(doc! {}).run().unwrap().unwrap().len(), 2);
    });
}
