//! Queries return the same results with any memory limit, and leave no temporary files.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::{fmt, path::Path};

use bson::{Bson, Document, RawDocumentBuf, doc, rawdoc};
use common::{
    Store, check_cases,
    random::{self, RandomIndex, RandomQuery},
    raw, refusal, rows,
};
use proptest::{collection::vec, prelude::*, test_runner::TestCaseError};
use slate_core::{Collection, Database, Durability, ErrorKind, ExplainVerbosity, Find, Hint, Index};

type Documents = Collection<RawDocumentBuf>;

/// Documents, indexes, queries, and the memory limit of each query.
#[derive(Clone)]
struct Case {
    documents: Vec<Document>,
    indexes: Vec<RandomIndex>,
    queries: Vec<(RandomQuery, usize)>,
}

/// Prints one line per item, to make failures readable.
impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.documents.iter().try_for_each(|document| writeln!(f, "insert {document}"))?;
        self.indexes.iter().try_for_each(|index| writeln!(f, "{index:?}"))?;
        self.queries.iter().try_for_each(|(query, memory)| writeln!(f, "{query:?} in {memory} bytes"))
    }
}

fn case() -> impl Strategy<Value = Case> {
    random::pool().prop_flat_map(|pool| {
        let numbers = vec(0..20_i32, 0..6).prop_map(Bson::from);
        let body = (pool.body(), prop::option::of(numbers));
        let memory = prop::sample::select(vec![0, 200, 1_024, 5_000]);
        (vec(body, 0..120), pool.indexes(3), vec((pool.query(), memory), 1..4)).prop_map(
            |(bodies, indexes, queries)| {
                let document = |(number, (body, numbers)): (i32, (Document, Option<Bson>))| {
                    // 7 and 1009 are coprime, so the ids are unique and unsorted.
                    let mut document = doc! { "_id": number * 7 % 1_009 };
                    document.extend(body);
                    document.extend(numbers.map(|numbers| ("n".to_owned(), numbers)));
                    document
                };
                Case { documents: (0..).zip(bodies).map(document).collect(), indexes, queries }
            },
        )
    })
}

fn fail(what: impl Into<String>) -> TestCaseError {
    TestCaseError::fail(what.into())
}

fn find(collection: &Documents, query: &RandomQuery) -> Find<RawDocumentBuf> {
    let mut find = collection.find(&query.filter).skip(query.skip);
    if let Some(sort) = &query.sort {
        find = find.sort(sort);
    }
    match query.limit {
        Some(limit) => find.limit(limit),
        None => find,
    }
}

fn equal<T: fmt::Debug>(what: &str, limited: &T, unlimited: &T) -> Result<(), TestCaseError> {
    // Compared as text because NaN is not equal to itself.
    let (limited, unlimited) = (format!("{limited:?}"), format!("{unlimited:?}"));
    if limited == unlimited { Ok(()) } else { Err(fail(format!("{what}: {limited}, expected {unlimited}"))) }
}

/// Compares each kind of query with and without a memory limit, on each plan.
fn check(db: &Database, collection: &Documents, query: &RandomQuery, memory: usize) -> Result<(), TestCaseError> {
    let Ok(explained) = find(collection, query).explain(ExplainVerbosity::QueryPlanner) else { return Ok(()) };
    for plan in 0..explained.candidates() {
        let found = || find(collection, query).force(plan);
        equal("find", &rows(found().memory_limit(memory)), &rows(found()))?;
        let transaction = db.begin().unwrap();
        let inside = find(&transaction.collection(collection.name()), query).force(plan);
        equal("find in a transaction", &rows(inside.clone().memory_limit(memory)), &rows(inside))?;
        transaction.rollback();
    }
    let distinct = || collection.find(&query.filter);
    for plan in 0..distinct()
        .distinct(&query.distinct)
        .explain(ExplainVerbosity::QueryPlanner)
        .map_or(0, |explained| explained.candidates())
    {
        let values = |find: Find<RawDocumentBuf>| find.distinct(&query.distinct).run().map_err(|error| refusal(&error));
        equal("distinct", &values(distinct().force(plan).memory_limit(memory)), &values(distinct().force(plan)))?;
    }
    for plan in 0..distinct().explain(ExplainVerbosity::QueryPlanner).map_or(0, |explained| explained.candidates()) {
        check_writes(db, collection, query, plan, memory)?;
    }
    Ok(())
}

fn check_writes(
    db: &Database,
    collection: &Documents,
    query: &RandomQuery,
    plan: usize,
    memory: usize,
) -> Result<(), TestCaseError> {
    let attempt = |write: &dyn Fn(&Documents) -> slate_core::Result<String>| {
        let transaction = db.begin().unwrap();
        let collection = transaction.collection(collection.name());
        let written = write(&collection).map_err(|error| refusal(&error));
        let left = rows(collection.find(doc! {}).hint(Hint::Forward));
        transaction.rollback();
        (written, left)
    };
    let grow = doc! { "$push": { "n": 7 }, "$set": { "b": 1 } };
    let update = |collection: &Documents| collection.update_many(&query.filter, &grow).force(plan);
    equal(
        "update_many",
        &attempt(&|collection| Ok(format!("{:?}", update(collection).memory_limit(memory).run()?))),
        &attempt(&|collection| Ok(format!("{:?}", update(collection).run()?))),
    )?;
    let delete = |collection: &Documents| collection.delete_many(&query.filter).force(plan);
    equal(
        "delete_many",
        &attempt(&|collection| Ok(format!("{}", delete(collection).memory_limit(memory).run()?))),
        &attempt(&|collection| Ok(format!("{}", delete(collection).run()?))),
    )
}

/// Opens a database with its own folder for temporary files.
fn open(store: Store, folder: &Path) -> Database {
    let spills = folder.join("spills");
    std::fs::create_dir(&spills).unwrap();
    let url = store.url_in(folder);
    Database::builder(&url).durability(Durability::Deferred).temp_directory(spills).open().unwrap()
}

fn assert_nothing_left(folder: &Path) {
    let left: Vec<_> = std::fs::read_dir(folder.join("spills")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

fn results_do_not_depend_on_memory(store: Store, cases: u32) {
    let folder = tempfile::tempdir().unwrap();
    let db = open(store, folder.path());
    check_cases(store, cases, &case(), |number, case| {
        let collection = db.collection::<RawDocumentBuf>(&format!("c{number}"));
        let documents: Vec<RawDocumentBuf> = case.documents.iter().map(raw).collect();
        collection.insert_many(&documents).run().map_err(|error| TestCaseError::reject(error.to_string()))?;
        for index in &case.indexes {
            // An index that the documents do not allow is skipped.
            let _ = collection.create_index(index.spec()).run();
        }
        // An index that finds each record by many entries, which the random indexes may not.
        collection.create_index(Index::on(doc! { "n": 1 })).run().unwrap();
        let numbers = RandomQuery {
            filter: doc! { "n": { "$gte": 0 } },
            sort: None,
            projection: None,
            skip: 0,
            limit: None,
            is_collated: false,
            distinct: "n".into(),
        };
        check(&db, &collection, &numbers, 200)?;
        for (query, memory) in &case.queries {
            check(&db, &collection, query, *memory)?;
        }
        collection.drop().unwrap();
        Ok(())
    });
    assert_nothing_left(folder.path());
}

#[test]
fn results_do_not_depend_on_memory_in_memory() {
    results_do_not_depend_on_memory(Store::Memory, 60);
}

#[test]
fn results_do_not_depend_on_memory_on_redb() {
    results_do_not_depend_on_memory(Store::Redb, 15);
}

#[cfg(feature = "rocksdb")]
#[test]
fn results_do_not_depend_on_memory_on_rocksdb() {
    results_do_not_depend_on_memory(Store::RocksDb, 15);
}

fn numbered(collection: &Documents, count: i32) {
    let document =
        |n: i32| rawdoc! { "_id": n, "a": n * 7_919 % 1_009, "b": [n % 10, n % 7, n], "text": "x".repeat(100) };
    collection.insert_many(&(0..count).map(document).collect::<Vec<_>>()).run().unwrap();
}

#[test]
fn a_cursor_dropped_during_a_merge_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(Store::Memory, folder.path());
    let collection = db.collection::<RawDocumentBuf>("c");
    numbered(&collection, 2_000);
    let mut cursor = collection.find(doc! {}).sort(doc! { "a": 1 }).memory_limit(10_000).cursor().unwrap();
    for _ in 0..100 {
        assert!(cursor.advance().unwrap());
    }
    drop(cursor);
    assert_nothing_left(folder.path());
}

/// Returns a cursor in the middle of a merge of temporary files.
fn merging(db: &Database) -> slate_core::Cursor {
    let collection = db.collection::<RawDocumentBuf>("c");
    numbered(&collection, 2_000);
    let mut cursor = collection.find(doc! {}).sort(doc! { "a": 1 }).memory_limit(10_000).cursor().unwrap();
    assert!(cursor.advance().unwrap());
    cursor
}

#[cfg(target_os = "linux")]
#[test]
fn a_temporary_file_has_no_name_and_is_readable_by_its_user_alone() {
    use std::os::unix::fs::MetadataExt as _;
    let folder = tempfile::tempdir().unwrap();
    let db = open(Store::Memory, folder.path());
    let _cursor = merging(&db);
    let spills = folder.path().join("spills");
    let open = std::fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap().path());
    let spilled: Vec<_> =
        open.filter(|file| std::fs::read_link(file).is_ok_and(|target| target.starts_with(&spills))).collect();
    assert!(!spilled.is_empty());
    for file in spilled {
        let metadata = std::fs::metadata(file).unwrap();
        assert_eq!((metadata.nlink(), metadata.mode() & 0o777), (0, 0o600));
    }
    assert_nothing_left(folder.path());
}

#[test]
fn a_process_that_is_killed_while_it_merges_leaves_no_file() {
    const FOLDER: &str = "SLATE_SPILLS_OF_A_KILLED_PROCESS";
    if let Some(folder) = std::env::var_os(FOLDER) {
        let db = open(Store::Memory, Path::new(&folder));
        let _cursor = merging(&db);
        std::process::abort();
    }
    let folder = tempfile::tempdir().unwrap();
    let test = "a_process_that_is_killed_while_it_merges_leaves_no_file";
    let killed = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test])
        .env(FOLDER, folder.path())
        .output()
        .unwrap();
    assert!(!killed.status.success());
    assert_nothing_left(folder.path());
}

#[test]
fn a_panic_during_a_merge_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(Store::Memory, folder.path());
    let collection = db.collection::<RawDocumentBuf>("c");
    numbered(&collection, 2_000);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        for row in collection.find(doc! {}).sort(doc! { "a": 1 }).memory_limit(10_000).run().unwrap() {
            assert!(row.unwrap().get_i32("a").unwrap() < 50);
        }
    }));
    assert!(panicked.is_err());
    assert_nothing_left(folder.path());
}

#[test]
fn a_limit_larger_than_memory_returns_the_first_rows_in_order() {
    let db = Database::open("memory:").unwrap();
    let collection = db.collection::<RawDocumentBuf>("c");
    numbered(&collection, 3_000);
    for limit in [1, 10, 500, 2_999, 3_000, 10_000] {
        let sorted = || collection.find(doc! {}).sort(doc! { "a": 1, "text": -1 }).limit(limit);
        for memory in [0, 1_000, 100_000] {
            let limited = rows(sorted().memory_limit(memory)).unwrap();
            assert!(limited == rows(sorted()).unwrap(), "limit {limit}, memory {memory}");
            assert_eq!(limited.len(), usize::try_from(limit.min(3_000)).unwrap());
        }
    }
}

#[test]
fn an_invalid_temporary_folder_fails_when_the_database_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    let refused = Database::builder("memory:").temp_directory(&missing).open().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotFound);
    assert!(refused.to_string().contains("missing"), "{refused}");
}

#[test]
fn a_missing_temporary_folder_fails_the_query_and_not_the_database() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(Store::Memory, folder.path());
    let collection = db.collection::<RawDocumentBuf>("c");
    numbered(&collection, 1_000);
    collection.create_index(Index::on(doc! { "b": 1 })).run().unwrap();
    std::fs::remove_dir(folder.path().join("spills")).unwrap();
    let io = |error: slate_core::Error| {
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        assert!(error.to_string().contains("spills"), "{error}");
        assert!(std::error::Error::source(&error).is_some());
    };
    let all = || collection.find(doc! {}).memory_limit(1_000);
    io(all().sort(doc! { "a": 1 }).run().and_then(Iterator::collect::<slate_core::Result<Vec<_>>>).unwrap_err());
    io(all().distinct("a").run().unwrap_err());
    let by_index = collection.find(doc! { "b": { "$gte": 0 } }).hint(Hint::Name("b_1".into()));
    io(by_index.memory_limit(1_000).count().run().unwrap_err());
    io(collection.update_many(doc! {}, doc! { "$set": { "c": 1 } }).memory_limit(1_000).run().unwrap_err());
    io(collection.delete_many(doc! {}).memory_limit(1_000).run().unwrap_err());
    assert_eq!(collection.count_documents(doc! { "c": 1 }).run().unwrap(), 0);
    assert_eq!(all().sort(doc! { "a": 1 }).memory_limit(1 << 20).run().unwrap().count(), 1_000);
}

#[test]
fn the_builder_sets_the_memory_limit_of_every_query() {
    let folder = tempfile::tempdir().unwrap();
    let spills = folder.path().join("spills");
    std::fs::create_dir(&spills).unwrap();
    let db = Database::builder("memory:").memory_limit(1_000).temp_directory(&spills).open().unwrap();
    let collection = db.collection::<RawDocumentBuf>("c");
    numbered(&collection, 1_000);
    assert_eq!(rows(collection.find(doc! {}).sort(doc! { "a": 1 })).unwrap().len(), 1_000);
    std::fs::remove_dir(&spills).unwrap();
    // Without the folder, spilling fails.
    let refused = rows(collection.find(doc! {}).sort(doc! { "a": 1 })).unwrap_err();
    assert!(refused.1.contains("temporary file"), "{refused:?}");
}

#[test]
fn a_query_that_may_not_use_temporary_files_fails_where_it_would() {
    common::on_every_store(|database| {
        let collection: Documents = database.collection("c");
        let documents: Vec<RawDocumentBuf> =
            (0..500_i32).map(|n| raw(&doc! { "_id": n, "a": n * 7 % 500, "pad": "x".repeat(100) })).collect();
        collection.insert_many(&documents).run().unwrap();
        let group = [doc! { "$group": { "_id": "$a", "all": { "$push": "$pad" } } }];
        let refused = |error: slate_core::Error| (error.kind(), error.code());
        for allowed in [true, false] {
            let found = collection.find(doc! {}).sort(doc! { "a": 1 }).memory_limit(5_000).allow_disk_use(allowed);
            let found = found.run().and_then(|rows| rows.collect::<Result<Vec<_>, _>>());
            let grouped = collection.aggregate(&group).memory_limit(5_000).allow_disk_use(allowed);
            let grouped = grouped.run().and_then(|rows| rows.collect::<Result<Vec<_>, _>>());
            if allowed {
                assert_eq!((found.unwrap().len(), grouped.unwrap().len()), (500, 500));
            } else {
                assert_eq!(found.map_err(refused).unwrap_err(), (ErrorKind::TooLarge, 292));
                assert_eq!(grouped.map_err(refused).unwrap_err(), (ErrorKind::TooLarge, 292));
            }
        }
        // What fits in memory succeeds either way.
        let rows = collection.find(doc! {}).sort(doc! { "a": 1 }).allow_disk_use(false).run().unwrap();
        assert_eq!(rows.count(), 500);
    });
}
