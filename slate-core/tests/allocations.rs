//! What a row costs in allocations, on the memory store: the difference between a small and a large collection, in which
//! what a question costs by itself drops out.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use bson::{DateTime, Document, RawDocumentBuf, doc, rawdoc};
use common::{Store, TestDatabase, records};
use serde::Deserialize;
use slate_core::{Collection, Find, Hint, Index};

type Documents = Collection<RawDocumentBuf>;

const SMALL: i32 = 2_000;
const LARGE: i32 = 10_000;

/// Buffers that hold all rows double until they are large enough: so many times at most, from the small collection to
/// the large, all buffers together.
const GROWTH: u64 = 16;

/// Records are fetched by their keys in batches of 256; each takes two allocations, the list of its keys and the way that a
/// walk goes down the tree.
const BATCHES: u64 = 2 * ((LARGE as u64 - SMALL as u64) / 256 + 2);

/// Two collections that differ in their size alone.
struct Sizes {
    small: TestDatabase,
    large: TestDatabase,
}

/// What answering took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Answer {
    /// Documents or values handed out, or counted.
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

    /// What the rows by which the large collection's answer is longer cost.
    fn of_more_rows(&self, answer: impl Fn(&Documents) -> u64) -> Answer {
        let one = |database: &TestDatabase| {
            let collection = database.collection("c");
            // The first question of its kind fills caches.
            answer(&collection);
            let mut rows = 0;
            let allocations = allocation_counter::measure(|| rows = answer(&collection)).count_total;
            Answer { rows, allocations }
        };
        let (small, large) = (one(&self.small), one(&self.large));
        Answer { rows: large.rows - small.rows, allocations: large.allocations.saturating_sub(small.allocations) }
    }
}

/// Reads every row where it lies; how many there were.
fn lent(find: Find<RawDocumentBuf>) -> u64 {
    let mut cursor = find.cursor().unwrap();
    let mut rows = 0;
    while cursor.advance().unwrap() {
        assert!(cursor.current().is_some());
        rows += 1;
    }
    rows
}

/// Takes every row as a document of its own; how many there were.
fn owned(find: Find<RawDocumentBuf>) -> u64 {
    find.run().unwrap().map(Result::unwrap).count() as u64
}

fn by(index: &str) -> Hint {
    Hint::Name(index.into())
}

type Question = fn(&Documents) -> Find<RawDocumentBuf>;

/// Questions that hand out rows, and what all the rows of one may take together.
const QUESTIONS: &[(&str, Question, u64)] = &[
    ("scan", |c| c.find(doc! {}), 0),
    ("scan backward", |c| c.find(doc! {}).hint(Hint::Backward), 0),
    ("scan with a filter", |c| c.find(doc! { "status": "active", "name": { "$gt": "a" } }).hint(Hint::Forward), 0),
    ("scan with skip", |c| c.find(doc! {}).skip(500), 0),
    ("range of _id", |c| c.find(doc! { "_id": { "$gte": 100 } }), 0),
    ("index range", |c| c.find(doc! { "number": { "$gte": 0 } }).hint(by("number_1")), BATCHES),
    ("index range, a filter", |c| c.find(doc! { "number": { "$gte": 0 }, "ten": 3 }).hint(by("number_1")), BATCHES),
    ("sort by index", |c| c.find(doc! {}).sort(doc! { "number": -1 }).hint(by("number_1")), BATCHES),
    // Which records were handed out already is held.
    ("multikey index", |c| c.find(doc! { "pairs": { "$gte": 0 } }).hint(by("pairs_1")), BATCHES + GROWTH),
    ("either of two indexes", |c| c.find(doc! { "$or": [{ "ten": 3 }, { "pair": { "$lt": 50 } }] }), BATCHES + GROWTH),
    ("covered", |c| c.find(doc! { "number": { "$gte": 0 } }).projection(doc! { "number": 1, "_id": 0 }), 0),
    ("covered, with _id", |c| c.find(doc! { "number": { "$gte": 0 } }).projection(doc! { "number": 1 }), 0),
    (
        "covered, of two fields",
        |c| c.find(doc! { "status": "active" }).projection(doc! { "contacts_count": 1, "status": 1 }),
        0,
    ),
    ("projection", |c| c.find(doc! {}).projection(doc! { "name": 1, "status": 1 }), 0),
    ("projection that leaves out", |c| c.find(doc! {}).projection(doc! { "tags": 0 }), 0),
    // What is sorted is held.
    ("sort", |c| c.find(doc! {}).sort(doc! { "name": 1 }), GROWTH),
    ("sort by two fields", |c| c.find(doc! {}).sort(doc! { "status": -1, "name": 1 }), GROWTH),
    ("sort in groups", |c| c.find(doc! {}).sort(doc! { "ten": 1, "name": 1 }).hint(by("ten_1")), BATCHES + GROWTH),
];

#[test]
fn a_row_that_is_lent_takes_no_allocation_and_an_owned_one_takes_one() {
    let sizes = Sizes::fill();
    for (name, question, allowed) in QUESTIONS {
        let lent = sizes.of_more_rows(|collection| lent(question(collection)));
        assert!(lent.rows >= 800, "{name}: {lent:?}");
        assert!(lent.allocations <= *allowed, "{name}, lent: {lent:?}");
        let owned = sizes.of_more_rows(|collection| owned(question(collection)));
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
fn a_row_that_is_rejected_takes_no_allocation() {
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
        assert_eq!(none, Answer { rows: 0, allocations: 0 }, "{filter}");
    }
    // By what an index's entry holds, before its record is fetched.
    let checked = doc! { "status": { "$gte": "a" }, "contacts_count": { "$mod": [1_000, 999] } };
    for filter in [doc! { "status": { "$gte": "a" }, "contacts_count": 700 }, checked] {
        let none =
            sizes.of_more_rows(|collection| lent(collection.find(&filter).hint(by("status_1_contacts_count_1"))));
        assert!(none.rows == 0 && none.allocations <= BATCHES, "{filter}: {none:?}");
    }
    // Few of many rows are kept: the others leave no trace but buffers that grew.
    let top = sizes.of_more_rows(|collection| lent(collection.find(doc! {}).sort(doc! { "name": 1 }).limit(100)));
    assert!(top.rows == 0 && top.allocations <= GROWTH, "{top:?}");
}

#[test]
fn a_row_that_is_counted_takes_no_allocation() {
    let sizes = Sizes::fill();
    let questions: [(&str, Question, u64); 5] = [
        ("by scan", |c| c.find(doc! { "status": "active" }).hint(Hint::Forward), 0),
        ("by index", |c| c.find(doc! { "ten": 3 }).hint(by("ten_1")), GROWTH),
        ("by index and filter", |c| c.find(doc! { "ten": 3, "missing": null }).hint(by("ten_1")), BATCHES),
        ("by multikey index", |c| c.find(doc! { "pairs": { "$gte": 0 } }).hint(by("pairs_1")), BATCHES + GROWTH),
        ("all", |c| c.find(doc! {}), 0),
    ];
    for (name, question, allowed) in questions {
        let counted = sizes.of_more_rows(|collection| question(collection).count().run().unwrap());
        assert!(counted.rows >= 800 && counted.allocations <= allowed, "{name}: {counted:?}");
    }
}

#[test]
fn different_values_take_allocations_by_their_number_and_not_by_that_of_the_rows() {
    let sizes = Sizes::fill();
    let values = |question: Question, path: &str| {
        sizes.of_more_rows(|collection| question(collection).distinct(path).run().unwrap().len() as u64)
    };
    assert_eq!(values(|c| c.find(doc! {}).hint(Hint::Forward), "ten"), Answer { rows: 0, allocations: 0 });
    assert_eq!(values(|c| c.find(doc! {}), "ten"), Answer { rows: 0, allocations: 0 });
    // Numbers, and the list of them.
    let of_index = values(|c| c.find(doc! {}).hint(by("number_1")), "number");
    assert!(of_index.rows == 8_000 && of_index.allocations <= GROWTH, "{of_index:?}");
    // A table holds each value's key bytes, the value and the key of the record that it is in; the caller, its text.
    let of_scan = values(|c| c.find(doc! {}).hint(Hint::Forward), "name");
    assert!(of_scan.rows == 8_000 && of_scan.allocations <= 4 * of_scan.rows + GROWTH, "{of_scan:?}");
}

#[test]
fn a_document_by_its_id_takes_few_allocations_whatever_the_collections_size() {
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
fn a_document_by_one_value_of_an_index_takes_few_allocations_whatever_the_collections_size() {
    let sizes = Sizes::fill();
    let filter = rawdoc! { "name": "a name of its own" };
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
