//! Index builds with concurrent writers, interrupted and resumed.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    thread,
};

use bson::{RawDocumentBuf, doc, rawdoc};
use common::{TestDatabase, on_every_store};
use slate_core::{CancelToken, Collection, Database, ErrorKind, ExplainVerbosity, Index, IndexState, RenameTarget};

type Documents = Collection<RawDocumentBuf>;

const COUNT: i32 = 5_000;

fn filled(test: &TestDatabase) -> Documents {
    let c = test.collection("c");
    c.insert_many(&(0..COUNT).map(|n| rawdoc! { "_id": n, "a": n, "b": [n % 10, -n] }).collect::<Vec<_>>())
        .run()
        .unwrap();
    c
}

fn states(collection: &Documents) -> Vec<(String, IndexState)> {
    collection.list_indexes().unwrap().into_iter().map(|index| (index.name, index.state)).collect()
}

fn verify(db: &Database) {
    let report = db.verify().run().unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
}

/// Checks that the index returns as many documents as a scan.
fn agrees(collection: &Documents, filter: bson::Document, index: &str) {
    let by_index = collection.find(&filter).hint(slate_core::Hint::Name(index.into())).count().run().unwrap();
    let by_scan = collection.find(&filter).hint(slate_core::Hint::Forward).count().run().unwrap();
    assert_eq!(by_index, by_scan, "{filter}");
}

/// Starts an index build and interrupts it as a crash would: only what has been committed remains.
fn interrupt_build(c: &Documents, index: Index, rounds: u32) {
    let mut left = rounds;
    let stopped = catch_unwind(AssertUnwindSafe(|| {
        c.create_index(index)
            .progress(|_| {
                left -= 1;
                assert!(left > 0, "the build is interrupted");
            })
            .run()
    }));
    assert!(stopped.is_err());
}

/// Writes to documents that the build has already read, and to others, in each of its rounds.
fn write_during_build(c: &Documents, round: i32) {
    let id = |place: i32| (place * 997 + round) % COUNT;
    for place in 0..5 {
        c.update_one(doc! { "_id": id(place) }, doc! { "$inc": { "a": 1_000_000 } }).run().unwrap();
        c.update_one(doc! { "_id": id(place + 5) }, doc! { "$push": { "b": round } }).run().unwrap();
        c.delete_one(doc! { "_id": id(place + 10) }).run().unwrap();
        c.insert_one(&rawdoc! { "_id": id(place) * 2 + 10 * COUNT + round, "a": -id(place) - COUNT * round - 1 })
            .unwrap();
        c.upsert_many(&[rawdoc! { "_id": -id(place), "a": id(place) + 2_000_000 + COUNT * round }]).unwrap();
    }
    // Rotates values among these documents, which are in several batches of the call.
    let turned = |n: i32| rawdoc! { "_id": COUNT - 1_200 + n, "a": 5_000_000 + (n + round) % 600 };
    c.upsert_many(&(0..600).map(turned).collect::<Vec<_>>()).unwrap();
    let moved = c.update_many(doc! { "_id": { "$gte": COUNT - 600 } }, doc! { "$inc": { "a": 3_000_000 } }).run();
    moved.unwrap();
}

#[test]
fn writes_between_the_rounds_of_a_build_are_indexed() {
    on_every_store(|test| {
        for (name, index) in [
            ("a_1", Index::on(doc! { "a": 1 }).unique()),
            ("b_-1_a_1", Index::on(doc! { "b": -1, "a": 1 })),
            ("partial", Index::on(doc! { "a": 1 }).only(doc! { "a": { "$gt": 100 } }).named("partial")),
        ] {
            let c = filled(&test);
            let mut rounds = 0;
            c.create_index(index)
                .progress(|_| {
                    rounds += 1;
                    if rounds <= 4 {
                        assert_eq!(states(&c), [(name.to_owned(), IndexState::Building)]);
                        assert!(!c.find(doc! { "a": 3 }).explain(ExplainVerbosity::QueryPlanner).unwrap().uses_index());
                        write_during_build(&c, rounds);
                    }
                })
                .run()
                .unwrap();
            assert!(rounds > 4);
            assert_eq!(states(&c), [(name.to_owned(), IndexState::Ready)]);
            verify(&test.db);
            agrees(&c, doc! { "a": { "$gt": 1_000 } }, name);
            c.drop().unwrap();
        }
    });
}

#[test]
fn writes_during_a_build_are_indexed() {
    on_every_store(|test| {
        let c = filled(&test);
        let done = AtomicBool::new(false);
        let writes = AtomicU32::new(0);
        thread::scope(|scope| {
            for writer in 0..2 {
                let (c, done, writes) = (&c, &done, &writes);
                scope.spawn(move || {
                    for n in 0.. {
                        let id = (n * 613 + writer * 31) % COUNT;
                        c.update_one(doc! { "_id": id }, doc! { "$inc": { "a": COUNT } }).run().unwrap();
                        c.delete_one(doc! { "_id": (id + 7) % COUNT }).run().unwrap();
                        let fresh = rawdoc! { "_id": format!("{writer} {n}"), "a": -1 - 2 * n - writer, "b": n };
                        c.insert_one(&fresh).unwrap();
                        writes.fetch_add(3, Ordering::Relaxed);
                        if done.load(Ordering::Relaxed) {
                            break;
                        }
                    }
                });
            }
            let unique = c.create_index(Index::on(doc! { "a": 1 }).unique()).run();
            let plain = c.create_index(Index::on(doc! { "b": 1, "a": -1 })).run();
            done.store(true, Ordering::Relaxed);
            unique.unwrap();
            plain.unwrap();
        });
        assert!(writes.load(Ordering::Relaxed) > 0);
        verify(&test.db);
        agrees(&c, doc! { "a": { "$lt": 0 } }, "a_1");
        agrees(&c, doc! { "b": { "$gt": 5 } }, "b_1_a_-1");
    });
}

#[test]
fn creating_the_index_again_resumes_an_interrupted_build() {
    on_every_store(|test| {
        let c = filled(&test);
        interrupt_build(&c, Index::on(doc! { "a": 1 }).unique(), 3);
        drop(c);
        let test = test.reopen();
        let c = test.collection("c");
        assert_eq!(states(&c), [("a_1".to_owned(), IndexState::Building)]);
        assert!(!c.find(doc! { "a": 3 }).explain(ExplainVerbosity::QueryPlanner).unwrap().uses_index());
        write_during_build(&c, 1);
        assert_eq!(
            c.create_index(Index::on(doc! { "a": 1 })).run().unwrap_err().code(),
            86,
            "the unfinished index has that name"
        );
        let mut reported = Vec::new();
        c.create_index(Index::on(doc! { "a": 1 }).unique()).progress(|read| reported.push(read)).run().unwrap();
        assert!(reported[0] > 3_000, "it resumed where it had stopped: {reported:?}");
        assert_eq!(states(&c), [("a_1".to_owned(), IndexState::Ready)]);
        verify(&test.db);
        agrees(&c, doc! { "a": { "$gt": 1_000 } }, "a_1");
        assert_eq!(test.db.resume_index_builds().unwrap(), 0);
    });
}

#[test]
fn interrupted_builds_can_be_resumed_dropped_renamed_and_resumed_in_a_transaction() {
    on_every_store(|test| {
        let c = filled(&test);
        interrupt_build(&c, Index::on(doc! { "a": 1 }), 2);
        interrupt_build(&c, Index::on(doc! { "b": 1 }), 2);
        interrupt_build(&c, Index::on(doc! { "a": -1 }), 2);
        assert!(c.drop_index("a_1").unwrap() && !c.drop_index("a_1").unwrap());
        test.db
            .transact(|tx| tx.collection::<RawDocumentBuf>("c").create_index(Index::on(doc! { "a": -1 })).run())
            .unwrap();
        assert_eq!(states(&c), [("a_-1".to_owned(), IndexState::Ready), ("b_1".to_owned(), IndexState::Building)]);
        // To names on both sides of the old one in the order of the catalog.
        let b = c.rename("d", RenameTarget::MustNotExist).unwrap().rename("b", RenameTarget::MustNotExist).unwrap();
        write_during_build(&b, 1);
        assert_eq!(test.db.resume_index_builds().unwrap(), 1);
        assert_eq!(states(&b), [("a_-1".to_owned(), IndexState::Ready), ("b_1".to_owned(), IndexState::Ready)]);
        verify(&test.db);
        agrees(&b, doc! { "b": { "$gt": 5 } }, "b_1");
    });
}

#[test]
fn duplicates_fail_the_build_and_leave_no_index() {
    on_every_store(|test| {
        // Duplicates in one round, in two, and written between rounds before or after the position of the build.
        type Break = fn(&Documents, u32);
        let breaks: [Break; 4] = [
            |c, round| {
                if round == 0 {
                    c.update_one(doc! { "_id": 4 }, doc! { "$set": { "a": 5 } }).run().unwrap();
                }
            },
            |c, round| {
                if round == 0 {
                    c.update_one(doc! { "_id": 4_900 }, doc! { "$set": { "a": 5 } }).run().unwrap();
                }
            },
            |c, round| {
                if round == 1 {
                    c.insert_one(&rawdoc! { "_id": -1, "a": 4_900 }).unwrap();
                }
            },
            |c, round| {
                if round == 1 {
                    c.insert_one(&rawdoc! { "_id": -1, "a": 4_900 }).unwrap();
                    // The later document owns the key, and changes of the earlier one must not remove it.
                    c.update_one(doc! { "_id": 4_900 }, doc! { "$set": { "c": 1 } }).run().unwrap();
                    c.update_one(doc! { "_id": 4_901 }, doc! { "$set": { "a": 4_902 } }).run().unwrap();
                }
            },
        ];
        for spoil in breaks {
            let c = filled(&test);
            spoil(&c, 0);
            let mut rounds = 0;
            let progress = |_| {
                rounds += 1;
                spoil(&c, rounds);
            };
            let failed = c.create_index(Index::on(doc! { "a": 1 }).unique()).progress(progress).run().unwrap_err();
            assert_eq!((failed.kind(), failed.code()), (ErrorKind::DuplicateKey, 11000));
            assert_eq!(states(&c), []);
            verify(&test.db);
            c.drop().unwrap();
        }
    });
}

#[test]
fn changing_a_duplicate_value_keeps_the_entry_of_the_other_document() {
    on_every_store(|test| {
        let c = filled(&test);
        interrupt_build(&c, Index::on(doc! { "a": 1 }).unique(), 2);
        c.insert_one(&rawdoc! { "_id": -1, "a": 4_900 }).unwrap();
        // Changes a document that the build has not read yet, so that it is no duplicate any more.
        c.update_one(doc! { "_id": 4_900 }, doc! { "$set": { "a": -4_900 } }).run().unwrap();
        c.insert_one(&rawdoc! { "_id": -2, "a": 4_901 }).unwrap();
        c.delete_one(doc! { "_id": 4_901 }).run().unwrap();
        assert_eq!(c.insert_one(&rawdoc! { "_id": -3, "a": 4_901 }).unwrap_err().code(), 11000);
        assert_eq!(test.db.resume_index_builds().unwrap(), 1);
        verify(&test.db);
        agrees(&c, doc! { "a": 4_901 }, "a_1");
    });
}

#[test]
fn a_cancelled_build_leaves_no_index() {
    on_every_store(|test| {
        let c = filled(&test);
        let token = CancelToken::new();
        let build = c.create_index(Index::on(doc! { "a": 1 })).cancel(token.clone());
        assert_eq!(build.progress(|_| token.cancel()).run().unwrap_err().kind(), ErrorKind::Interrupted);
        assert_eq!(states(&c), []);
        c.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
        verify(&test.db);
    });
}

#[test]
fn two_concurrent_builds_of_the_same_index_both_succeed() {
    on_every_store(|test| {
        let c = filled(&test);
        thread::scope(|scope| {
            let builders = [(); 2].map(|()| scope.spawn(|| c.create_index(Index::on(doc! { "b": 1 })).run().unwrap()));
            builders.into_iter().for_each(|builder| assert_eq!(builder.join().unwrap(), "b_1"));
        });
        assert_eq!(states(&c), [("b_1".to_owned(), IndexState::Ready)]);
        verify(&test.db);
    });
}

#[test]
fn a_build_of_an_index_that_is_dropped_fails() {
    on_every_store(|test| {
        let drops: [fn(&Documents) -> bool; 2] = [|c| c.drop_index("a_1").unwrap(), |c| c.drop().unwrap()];
        for drop in drops {
            let c = filled(&test);
            let mut dropped = false;
            let progress = |_| dropped = dropped || drop(&c);
            let error = c.create_index(Index::on(doc! { "a": 1 })).progress(progress).run().unwrap_err();
            assert_eq!((error.kind(), error.code()), (ErrorKind::NotFound, 276));
            assert!(!error.is_retryable(), "a retry cannot succeed");
            c.drop().unwrap();
        }
    });
}
