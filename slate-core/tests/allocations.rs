//! Allocations per row on the memory store: compares a small and a large collection, so that the constant allocations
//! of a query cancel out.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use bson::{DateTime, Document, RawDocumentBuf, doc, rawdoc};
use common::{Store, TestDatabase, records};
use serde::Deserialize;
use slate_core::{Collection, Find, Hint, Index};

type Documents = Collection<RawDocumentBuf>;

const SMALL: i32 = 2_000;
const LARGE: i32 = 10_000;

/// The most reallocations of all growing buffers together, which double their size between the small collection and the
/// large one.
const GROWTH: u64 = 16;

/// Records are fetched by their keys in batches of 256. Each batch takes two allocations: the list of keys and the path
/// of a cursor in the tree.
const BATCHES: u64 = 2 * ((LARGE as u64 - SMALL as u64) / 256 + 2);

/// Two collections that differ only in size.
struct Sizes {
    small: TestDatabase,
    large: TestDatabase,
}

/// The cost of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cost {
    /// Documents or values that were returned or counted.
    rows: u64,
    allocations: u64,
}

impl Sizes {
    fn fill() -> Self {
        let of = |count| {
            let database = Store::Memory.open();
            records::fill(&database.collection("c"), count);
            database
        };
        Self { small: of(SMALL), large: of(LARGE) }
    }

    /// Returns the difference in cost between the large and the small collection.
    fn of_more_rows(&self, run: impl Fn(&Documents) -> u64) -> Cost {
        let one = |database: &TestDatabase| {
            let collection = database.collection("c");
            // Fills caches before measuring.
            run(&collection);
            let mut rows = 0;
            let allocations = allocation_counter::measure(|| rows = run(&collection)).count_total;
            Cost { rows, allocations }
        };
        let (small, large) = (one(&self.small), one(&self.large));
        Cost { rows: large.rows - small.rows, allocations: large.allocations.saturating_sub(small.allocations) }
    }
}

/// Reads every row in place. Returns the number of rows.
fn lent(find: Find<RawDocumentBuf>) -> u64 {
    let mut cursor = find.cursor().unwrap();
    let mut rows = 0;
    while cursor.advance().unwrap() {
        assert!(cursor.current().is_some());
        rows += 1;
    }
    rows
}

/// Reads every row as an owned document. Returns the number of rows.
fn owned(find: Find<RawDocumentBuf>) -> u64 {
    find.run().unwrap().map(Result::unwrap).count() as u64
}

fn by(index: &str) -> Hint {
    Hint::Name(index.into())
}

type QueryBuilder = fn(&Documents) -> Find<RawDocumentBuf>;

/// Queries that return rows, and the allocations that all rows of one may take together.
const QUERIES: &[(&str, QueryBuilder, u64)] = &[
    ("scan", |c| c.find(doc! {}), 0),
    ("scan backward", |c| c.find(doc! {}).hint(Hint::Backward), 0),
    ("scan with a filter", |c| c.find(doc! { "status": "active", "name": { "$gt": "a" } }).hint(Hint::Forward), 0),
    ("scan with skip", |c| c.find(doc! {}).skip(500), 0),
    ("range of _id", |c| c.find(doc! { "_id": { "$gte": 100 } }), 0),
    ("index range", |c| c.find(doc! { "number": { "$gte": 0 } }).hint(by("number_1")), BATCHES),
    ("index range, a filter", |c| c.find(doc! { "number": { "$gte": 0 }, "ten": 3 }).hint(by("number_1")), BATCHES),
    ("sort by index", |c| c.find(doc! {}).sort(doc! { "number": -1 }).hint(by("number_1")), BATCHES),
    // The executor holds which records it has returned.
    ("multikey index", |c| c.find(doc! { "pairs": { "$gte": 0 } }).hint(by("pairs_1")), BATCHES + GROWTH),
    ("union of two indexes", |c| c.find(doc! { "$or": [{ "ten": 3 }, { "pair": { "$lt": 50 } }] }), BATCHES + GROWTH),
    ("covered", |c| c.find(doc! { "number": { "$gte": 0 } }).projection(doc! { "number": 1, "_id": 0 }), 0),
    ("covered, with _id", |c| c.find(doc! { "number": { "$gte": 0 } }).projection(doc! { "number": 1 }), 0),
    (
        "covered projection of two fields",
        |c| c.find(doc! { "status": "active" }).projection(doc! { "contacts_count": 1, "status": 1 }),
        0,
    ),
    ("projection", |c| c.find(doc! {}).projection(doc! { "name": 1, "status": 1 }), 0),
    ("projection that excludes a field", |c| c.find(doc! {}).projection(doc! { "tags": 0 }), 0),
    // The executor holds the rows that it sorts.
    ("sort", |c| c.find(doc! {}).sort(doc! { "name": 1 }), GROWTH),
    ("sort by two fields", |c| c.find(doc! {}).sort(doc! { "status": -1, "name": 1 }), GROWTH),
    ("sort within groups", |c| c.find(doc! {}).sort(doc! { "ten": 1, "name": 1 }).hint(by("ten_1")), BATCHES + GROWTH),
];

#[test]
fn a_lent_row_takes_no_allocation_and_an_owned_one_takes_one() {
    let sizes = Sizes::fill();
    for (name, query, allowed) in QUERIES {
        let lent = sizes.of_more_rows(|collection| lent(query(collection)));
        assert!(lent.rows >= 800, "{name}: {lent:?}");
        assert!(lent.allocations <= *allowed, "{name}, lent: {lent:?}");
        let owned = sizes.of_more_rows(|collection| owned(query(collection)));
        assert_eq!(owned.rows, lent.rows, "{name}");
        assert!(owned.allocations <= owned.rows + allowed, "{name}, owned: {owned:?}");
    }
}

#[derive(Deserialize)]
struct Borrowed<'r> {
    #[serde(rename = "_id")]
    id: i32,
    name: &'r str,
    contacts_count: i64,
}

#[derive(Deserialize)]
struct Owned {
    name: String,
    tags: Vec<String>,
    last_contacted_at: DateTime,
    notes: Option<String>,
}

#[test]
fn a_typed_row_takes_the_allocations_of_what_its_type_owns() {
    let sizes = Sizes::fill();
    let borrowed = sizes.of_more_rows(|collection| {
        let mut cursor = collection.find(doc! {}).cursor().unwrap();
        let mut rows = 0;
        while cursor.advance().unwrap() {
            let row: Borrowed<'_> = cursor.deserialize_current().unwrap();
            assert!(row.id >= 0 && row.contacts_count >= 0 && row.name.starts_with("record"));
            rows += 1;
        }
        rows
    });
    assert_eq!((borrowed.rows, borrowed.allocations), (8_000, 0));
    let owned = sizes.of_more_rows(|collection| {
        let rows = collection.with_type::<Owned>().find(doc! {}).run().unwrap().map(Result::unwrap);
        rows.inspect(|row| assert!(row.name.len() > 6 && row.tags.len() == 3 && row.last_contacted_at > DateTime::MIN))
            .map(|row| 1 - row.notes.map_or(0, |notes| u64::from(notes.is_empty())))
            .sum()
    });
    // The name, the list of tags, three tags, the key that bson's `DateTime` reads, and in half of the records notes.
    assert_eq!((owned.rows, owned.allocations), (8_000, 8_000 * 6 + 4_000));
}

#[test]
fn a_rejected_row_takes_no_allocation() {
    let sizes = Sizes::fill();
    let filters: [Document; 20] = [
        doc! { "status": "none" },
        doc! { "status": { "$in": ["none", "nobody"] } },
        doc! { "name": { "$lt": "a" } },
        doc! { "name": { "$regex": "^no" } },
        doc! { "name": { "$regex": "NO(ne|body)$", "$options": "i" } },
        doc! { "contacts_count": { "$mod": [1_000, 999] } },
        doc! { "contacts_count": { "$bitsAllSet": 1_024 } },
        doc! { "missing": { "$ne": null } },
        doc! { "notes": { "$type": "binData" } },
        doc! { "missing": { "$exists": true } },
        doc! { "tags": "none" },
        doc! { "tags": { "$all": ["vip", "none"] } },
        doc! { "tags": { "$size": 7 } },
        doc! { "tags": { "$elemMatch": { "$gt": "x", "$lt": "y" } } },
        doc! { "tags.0.name": "none" },
        doc! { "tags": { "$not": { "$exists": true } } },
        doc! { "$nor": [{ "name": { "$exists": true } }] },
        doc! { "$or": [{ "notes": 1 }, { "status": "none" }] },
        doc! { "status": "active", "contacts_count": { "$gte": 0 }, "notes": "none" },
        doc! { "last_contacted_at": { "$lt": bson::DateTime::from_millis(0) } },
    ];
    for filter in &filters {
        let none = sizes.of_more_rows(|collection| lent(collection.find(filter).hint(Hint::Forward)));
        assert_eq!(none, Cost { rows: 0, allocations: 0 }, "{filter}");
    }
    // A condition that is evaluated on the index entry, before the record is fetched.
    let checked = doc! { "status": { "$gte": "a" }, "contacts_count": { "$mod": [1_000, 999] } };
    for filter in [doc! { "status": { "$gte": "a" }, "contacts_count": 700 }, checked] {
        let none =
            sizes.of_more_rows(|collection| lent(collection.find(&filter).hint(by("status_1_contacts_count_1"))));
        assert!(none.rows == 0 && none.allocations <= BATCHES, "{filter}: {none:?}");
    }
    // Few of many rows are retained: rejected rows cost nothing but the growth of buffers.
    let top = sizes.of_more_rows(|collection| lent(collection.find(doc! {}).sort(doc! { "name": 1 }).limit(100)));
    assert!(top.rows == 0 && top.allocations <= GROWTH, "{top:?}");
}

#[test]
fn a_counted_row_takes_no_allocation() {
    let sizes = Sizes::fill();
    let queries: [(&str, QueryBuilder, u64); 5] = [
        ("by scan", |c| c.find(doc! { "status": "active" }).hint(Hint::Forward), 0),
        ("by index", |c| c.find(doc! { "ten": 3 }).hint(by("ten_1")), GROWTH),
        ("by index and filter", |c| c.find(doc! { "ten": 3, "missing": null }).hint(by("ten_1")), BATCHES),
        ("by multikey index", |c| c.find(doc! { "pairs": { "$gte": 0 } }).hint(by("pairs_1")), BATCHES + GROWTH),
        ("all", |c| c.find(doc! {}), 0),
    ];
    for (name, query, allowed) in queries {
        let counted = sizes.of_more_rows(|collection| query(collection).count().run().unwrap());
        assert!(counted.rows >= 800 && counted.allocations <= allowed, "{name}: {counted:?}");
    }
}

#[test]
fn distinct_allocates_per_value_and_not_per_row() {
    let sizes = Sizes::fill();
    let values = |query: QueryBuilder, path: &str| {
        sizes.of_more_rows(|collection| query(collection).distinct(path).run().unwrap().len() as u64)
    };
    assert_eq!(values(|c| c.find(doc! {}).hint(Hint::Forward), "ten"), Cost { rows: 0, allocations: 0 });
    assert_eq!(values(|c| c.find(doc! {}), "ten"), Cost { rows: 0, allocations: 0 });
    // Numbers take no allocation each; their list does.
    let of_index = values(|c| c.find(doc! {}).hint(by("number_1")), "number");
    assert!(of_index.rows == 8_000 && of_index.allocations <= GROWTH, "{of_index:?}");
    // A hash table holds each value's key bytes, the value and the key of its record; the caller owns its text.
    let of_scan = values(|c| c.find(doc! {}).hint(Hint::Forward), "name");
    assert!(of_scan.rows == 8_000 && of_scan.allocations <= 4 * of_scan.rows + GROWTH, "{of_scan:?}");
}

type Stages = fn() -> Vec<Document>;

/// Pipelines whose result has few documents, and the allocations that all documents of their input may take together.
const PIPELINES: &[(&str, Stages, u64)] = &[
    (
        "count and sum",
        || vec![doc! { "$group": { "_id": null, "n": { "$sum": 1 }, "total": { "$sum": "$number" } } }],
        0,
    ),
    (
        "few groups",
        || {
            vec![doc! { "$group": {
                "_id": "$ten", "n": { "$sum": 1 }, "mean": { "$avg": "$number" }, "latest": { "$max": "$last_contacted_at" },
            } }]
        },
        0,
    ),
    // The tables of the groups grow, and the next stage has as many documents.
    (
        "a group for each document",
        || vec![doc! { "$group": { "_id": "$name", "n": { "$sum": 1 } } }, doc! { "$group": { "_id": "$n" } }],
        2 * GROWTH,
    ),
    (
        "unwind and group",
        || vec![doc! { "$unwind": "$tags" }, doc! { "$group": { "_id": "$tags", "n": { "$sum": 1 } } }],
        0,
    ),
    (
        "unwind, match and group",
        || {
            vec![
                doc! { "$unwind": "$tags" },
                doc! { "$match": { "tags": { "$gt": "a" } } },
                doc! { "$group": { "_id": "$ten", "n": { "$sum": 1 } } },
            ]
        },
        0,
    ),
    // The sort holds its rows.
    (
        "running window",
        || {
            let window = doc! { "documents": ["unbounded", "current"] };
            let total = doc! { "$sum": "$number", "window": window };
            vec![
                doc! { "$setWindowFields": { "partitionBy": "$ten", "sortBy": { "_id": 1 }, "output": { "total": total } } },
                doc! { "$group": { "_id": "$ten", "most": { "$max": "$total" } } },
            ]
        },
        GROWTH,
    ),
    // The documents of a partition are held.
    (
        "moving window",
        || {
            let mean = doc! { "$avg": "$number", "window": { "documents": [-2, 2] } };
            vec![
                doc! { "$setWindowFields": { "sortBy": { "_id": 1 }, "output": { "mean": mean, "all": { "$sum": "$number" } } } },
                doc! { "$group": { "_id": "$ten", "most": { "$max": "$mean" } } },
            ]
        },
        GROWTH,
    ),
    (
        "facet of groups",
        || {
            vec![doc! { "$facet": {
                "ten": [{ "$group": { "_id": "$ten", "n": { "$sum": 1 } } }],
                "all": [{ "$group": { "_id": null, "total": { "$sum": "$number" } } }],
            } }]
        },
        0,
    ),
];

#[test]
fn a_document_in_a_pipeline_takes_no_allocation() {
    let sizes = Sizes::fill();
    for (name, stages, allowed) in PIPELINES {
        let cost = sizes.of_more_rows(|collection| collection.aggregate(stages()).collect().unwrap().len() as u64);
        assert!(cost.rows == 0 && cost.allocations <= *allowed, "{name}: {cost:?}");
    }
}

#[test]
fn find_by_id_takes_few_allocations_in_a_collection_of_any_size() {
    let sizes = Sizes::fill();
    let lookups = |database: &TestDatabase| {
        let collection = database.collection("c");
        let find = |id: i32| collection.find_by_id(id).unwrap().unwrap();
        find(1);
        allocation_counter::measure(|| drop(find(1_000))).count_total
    };
    let allocations = (lookups(&sizes.small), lookups(&sizes.large));
    assert_eq!(allocations.0, allocations.1);
    assert!(allocations.0 <= 8, "{allocations:?}");
}

#[test]
fn a_command_that_finds_by_id_takes_few_allocations_in_a_collection_of_any_size() {
    let sizes = Sizes::fill();
    let lookups = |database: &TestDatabase| {
        let commands = database.db.commands();
        let command = rawdoc! {
            "find": "c", "filter": { "_id": 1_000 }, "limit": 1, "singleBatch": true, "lsid": { "id": 1 }, "$db": "test",
        };
        let find = || drop(commands.run(&command).unwrap());
        find();
        allocation_counter::measure(find).count_total
    };
    let allocations = (lookups(&sizes.small), lookups(&sizes.large));
    assert_eq!(allocations.0, allocations.1);
    assert!(allocations.0 <= 8, "{allocations:?}");
}

#[test]
fn a_point_lookup_by_index_takes_few_allocations_in_a_collection_of_any_size() {
    let sizes = Sizes::fill();
    let filter = rawdoc! { "name": "a unique name" };
    let lookups = |database: &TestDatabase| {
        let collection: Documents = database.collection("c");
        collection.create_index(Index::on(doc! { "name": 1 })).run().unwrap();
        collection.insert_one(&filter).unwrap();
        let find = || assert_eq!(lent(collection.find(&filter)), 1);
        find();
        allocation_counter::measure(find).count_total
    };
    let allocations = (lookups(&sizes.small), lookups(&sizes.large));
    assert_eq!(allocations.0, allocations.1);
    assert!(allocations.0 <= 12, "{allocations:?}");
}

/// A commit wakes the streams of what it changed and does not look at the others. Looking for its own takes some names.
#[test]
#[cfg(feature = "async")]
fn a_write_costs_the_same_however_many_streams_of_other_collections_wait() {
    const WRITES: i32 = 100;
    const NAMES: u64 = 4;
    let database = Store::Memory.open();
    database.db.enable_changes(slate_core::ChangeLog::new()).unwrap();
    let written = database.collection("written");
    let cost_from = |first: i32| -> u64 {
        let insert = |id: i32| written.insert_one(&rawdoc! { "_id": id }).map(drop).unwrap();
        (first..first + WRITES).map(|id| allocation_counter::measure(|| insert(id)).count_total).sum()
    };
    cost_from(0);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let db = slate_core::aio::Database::from(database.db.clone());
    let wait = |count: usize| {
        runtime.block_on(async {
            let mut waiting = Vec::new();
            for number in 0..count {
                let watched = db.collection::<RawDocumentBuf>(&format!("c{number}"));
                let mut stream = watched.watch([] as [Document; 0]).await.unwrap();
                // Until it waits.
                let next = tokio::time::timeout(std::time::Duration::from_millis(2), stream.next());
                assert!(next.await.is_err());
                waiting.push(stream);
            }
            waiting
        })
    };
    let few = wait(2);
    let cost_with_few = cost_from(WRITES);
    let many = wait(200);
    let cost_with_many = cost_from(2 * WRITES);
    assert!(
        cost_with_many <= cost_with_few + cost_with_few / 50 + NAMES,
        "{cost_with_many} allocations beside {} streams, {cost_with_few} beside {}",
        many.len(),
        few.len()
    );
}
