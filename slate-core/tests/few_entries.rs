//! The express path returns the same documents as a scan for every number of documents per value.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use bson::{Document, RawDocumentBuf, doc, rawdoc};
use common::on_every_store;
use slate_core::{CancelToken, Collection, ErrorKind, ExplainVerbosity, Find, Hint, Index};

type Documents = Collection<RawDocumentBuf>;

/// For each value `v`, `v` documents; and documents that an equality could match by mistake.
fn documents() -> Vec<RawDocumentBuf> {
    let mut documents = Vec::new();
    for value in 0..20 {
        documents.extend((0..value).map(|other| rawdoc! { "a": value, "b": other }));
    }
    documents.extend((0..300).map(|other| rawdoc! { "a": "many", "b": other }));
    documents.extend([rawdoc! { "a": 3.0 }, rawdoc! { "a": 3_i64 }, rawdoc! { "a": null }, rawdoc! {}]);
    documents.extend([rawdoc! { "a": { "b": 3 } }, rawdoc! { "a": "many more" }, rawdoc! { "a": "" }]);
    documents
}

/// Returns the documents found, in the order of `_id`.
fn found(find: Find<RawDocumentBuf>) -> Vec<RawDocumentBuf> {
    let mut found: Vec<_> = find.run().unwrap().map(Result::unwrap).collect();
    found.sort_by_key(|document| document.get_object_id("_id").unwrap());
    found
}

fn check(c: &Documents, filter: &Document) {
    let all = found(c.find(filter).hint(Hint::Forward));
    assert_eq!(found(c.find(filter)), all, "{filter}");
    for (skip, limit) in [(0, 0), (0, 1), (0, 7), (0, 8), (0, 9), (0, 1_000), (1, 2), (2, 1_000)] {
        let some = found(c.find(filter).skip(skip).limit(limit));
        let wanted = all.len().saturating_sub(usize::try_from(skip).unwrap()).min(usize::try_from(limit).unwrap());
        assert_eq!(some.len(), wanted, "{filter}, from {skip}, {limit} at most");
        assert!(some.iter().all(|document| all.contains(document)), "{filter}, from {skip}, {limit} at most");
    }
    let first = c.find(filter).first().unwrap();
    assert!(first.as_ref().map_or(all.is_empty(), |first| all.contains(first)), "{filter}");
    assert_eq!(c.find(filter).count().run().unwrap(), all.len() as u64, "{filter}");
    let by_b = |find: Find<RawDocumentBuf>| -> Vec<_> {
        find.sort(doc! { "b": 1, "_id": 1 }).run().unwrap().map(Result::unwrap).collect()
    };
    assert_eq!(by_b(c.find(filter)), by_b(c.find(filter).hint(Hint::Forward)), "{filter} sorted");
}

#[test]
fn the_express_path_agrees_with_a_scan() {
    for keys in [doc! { "a": 1 }, doc! { "a": -1 }, doc! { "a": 1, "b": -1 }, doc! { "a": -1, "b": 1, "c": 1 }] {
        on_every_store(|test| {
            let c: Documents = test.collection("c");
            c.create_index(Index::on(&keys)).run().unwrap();
            c.insert_many(&documents()).run().unwrap();
            let values = (0..21).map(|value| doc! { "a": value });
            let others = [
                doc! { "a": "many" },
                doc! { "a": { "$eq": 5 } },
                doc! { "a": { "$in": [5] } },
                doc! { "a": null },
                doc! { "a": { "b": 3 } },
                doc! { "a": "" },
                doc! { "a": { "$ne": 5 } },
                doc! { "$nor": [{ "a": 5 }] },
                doc! { "a": [3] },
            ];
            for filter in values.chain(others) {
                check(&c, &filter);
            }
            // An array makes the index multikey: a document can match by one of several elements and have several
            // entries of a value.
            c.insert_one(&rawdoc! { "a": 5, "b": [1, 2, 3] }).unwrap();
            check(&c, &doc! { "a": 5 });
            c.insert_one(&rawdoc! { "a": [5, 6, 5], "b": 1 }).unwrap();
            c.insert_one(&rawdoc! { "a": [3], "b": 1 }).unwrap();
            for filter in [doc! { "a": 5 }, doc! { "a": 6 }, doc! { "a": [3] }, doc! { "a": 3 }, doc! { "a": "many" }] {
                check(&c, &filter);
            }
            // Values that are truncated in the entries do not identify the document's value.
            let [long, longer] = [2_500, 2_501].map(|length| "x".repeat(length));
            c.insert_many(&[rawdoc! { "a": long.as_str() }, rawdoc! { "a": longer.as_str() }]).run().unwrap();
            for filter in [doc! { "a": long.as_str() }, doc! { "a": longer.as_str() }, doc! { "a": 5 }] {
                check(&c, &filter);
            }
        });
    }
}

#[test]
fn a_value_of_a_unique_index_has_at_most_one_document() {
    on_every_store(|test| {
        let c: Documents = test.collection("c");
        c.create_index(Index::on(doc! { "a": 1 }).unique()).run().unwrap();
        c.insert_many(&(0..50).map(|value| rawdoc! { "a": value }).collect::<Vec<_>>()).run().unwrap();
        c.create_index(Index::on(doc! { "b": -1, "a": 1 }).unique()).run().unwrap();
        c.insert_many(&(50..90).map(|value| rawdoc! { "a": value, "b": value % 5 }).collect::<Vec<_>>()).run().unwrap();
        for filter in [doc! { "a": 7 }, doc! { "a": 95 }, doc! { "a": "7" }, doc! { "b": 3 }, doc! { "b": 9 }] {
            check(&c, &filter);
        }
    });
}

fn fill_with_two(c: &Documents) {
    c.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
    c.insert_many(&[rawdoc! { "_id": 1, "a": 5 }, rawdoc! { "_id": 2, "a": 5 }]).run().unwrap();
}

#[test]
fn a_hint_and_a_forced_plan_override_the_express_path() {
    on_every_store(|test| {
        let c: Documents = test.collection("c");
        fill_with_two(&c);
        let find = || c.find(doc! { "a": 5 });
        assert!(find().hint(Hint::Name("b_1".into())).cursor().is_err() && find().force(77).cursor().is_err());
        let backward = find().hint(Hint::Backward).run().unwrap().map(|found| found.unwrap().get_i32("_id").unwrap());
        assert_eq!(backward.collect::<Vec<_>>(), [2, 1]);
    });
}

#[test]
fn a_cursor_of_the_express_path_shows_one_commit_and_ends_like_others() {
    on_every_store(|test| {
        let c: Documents = test.collection("c");
        fill_with_two(&c);
        let mut cursor = c.find(doc! { "a": 5 }).cursor().unwrap();
        c.delete_many(doc! { "a": 5 }).run().unwrap();
        assert!(cursor.current().is_none());
        for id in [1, 2] {
            assert!(cursor.advance().unwrap());
            assert_eq!(cursor.current().unwrap().get_i32("_id").unwrap(), id);
        }
        assert!((0..3).all(|_| !cursor.advance().unwrap() && cursor.current().is_none()));
        let token = CancelToken::new();
        token.cancel();
        let late = c.find(doc! { "a": 5 }).cancel(token).cursor().err().unwrap();
        assert_eq!(late.kind(), ErrorKind::Interrupted);
    });
}

#[test]
fn explain_shows_the_express_path_where_a_scan_would_be_cheaper() {
    on_every_store(|test| {
        let c: Documents = test.collection("c");
        c.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
        for size in [1, 8] {
            c.insert_many(&(0..size).map(|_| rawdoc! { "a": size }).collect::<Vec<_>>()).run().unwrap();
            let explained = c.find(doc! { "a": size }).explain(ExplainVerbosity::ExecutionStats).unwrap();
            let stats = explained.execution_stats().unwrap();
            let counted = (stats.rows, stats.keys_examined, stats.documents_examined);
            let size = u64::try_from(size).unwrap();
            assert_eq!(counted, (size, size, size), "{explained}");
        }
    });
}
