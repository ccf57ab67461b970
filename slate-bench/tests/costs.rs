//! Tests costs that do not vary between machines: keys and documents read by a query, and allocations per returned or
//! rejected row.
#![cfg(all(feature = "slate", feature = "allocations"))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use slate_bench::{
    Change, Condition, Consume, Field, Find, Query, Record, Setup, Subject, Test, Value, expected::Expected,
    harness::Allocations, slate::Slate, workload::query_rows,
};

const SEED: u64 = 42;

fn records(size: i64) -> Vec<Record> {
    (0..size).map(|id| Record::new(SEED, 0, id, 0)).collect()
}

fn loaded(store: &str, records: &[Record]) -> (Slate, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut slate = Slate::open(store, folder.path(), Setup { users: 1, cache: None }).unwrap();
    let batch = slate.encode(records.iter().cloned().map(Change::Whole)).unwrap();
    slate.insert(0, &batch).unwrap();
    (slate, folder)
}

/// Returns the allocations of a query after a warm-up.
fn allocations(slate: &mut Slate, query: &Query, consume: Consume) -> u64 {
    let prepared = slate.prepare(0, query).unwrap();
    slate.run(&prepared, consume).unwrap();
    Allocations::during(|| slate.run(&prepared, consume).unwrap()).1.unwrap().count
}

fn query(name: &str) -> Query {
    query_rows(1_000, SEED).into_iter().find(|row| row.name == name).unwrap_or_else(|| panic!("no {name}")).query
}

/// A small and a larger collection in memory.
struct Pair {
    sizes: [i64; 2],
    loaded: [(Slate, tempfile::TempDir); 2],
}

impl Pair {
    fn new() -> Self {
        let sizes = [1_000, 5_000];
        Self { sizes, loaded: sizes.map(|size| loaded("memory", &records(size))) }
    }

    /// Returns the allocations of a query per additional record.
    fn per_record(&mut self, query: &Query, consume: Consume) -> f64 {
        let [(small, _), (large, _)] = &mut self.loaded;
        let (few, many) = (allocations(small, query, consume), allocations(large, query, consume));
        #[expect(clippy::cast_precision_loss, reason = "the numbers are small")]
        let growth = (many as f64 - few as f64) / (self.sizes[1] - self.sizes[0]) as f64;
        growth
    }
}

/// Tolerates a few allocations for growing buffers.
const NONE: f64 = 0.03;

#[test]
fn a_lent_row_takes_no_allocation() {
    let mut pair = Pair::new();
    let scan = query("Full scan (no filter)");
    let indexed = query("status = 'active' (indexed)");
    let projected = query("projection (name, status only)");
    let covered = query("status = 'active' projection [status] (index-covered)");
    let sorted = query("sort contacts_count (no take)");
    for query in [scan, indexed, projected, covered, sorted] {
        let growth = pair.per_record(&query, Consume::Lent);
        assert!(growth < NONE, "{growth} for {query:?}");
    }
}

#[test]
fn an_owned_row_takes_one_allocation() {
    let mut pair = Pair::new();
    for name in ["Full scan (no filter)", "projection (name, status only)", "sort contacts_count (no take)"] {
        let growth = pair.per_record(&query(name), Consume::Owned);
        assert!(growth < 1.0 + NONE, "{growth} for {name}");
    }
}

#[test]
fn a_rejected_row_takes_no_allocation() {
    let mut pair = Pair::new();
    let rejecting = |field, test| Condition { field, test };
    let filters = [
        vec![rejecting(Field::Recommendation1, Test::Equal(Value::Str("ProductD")))],
        vec![rejecting(Field::Tags, Test::Contains("nothing_of_that_name"))],
        vec![rejecting(Field::Name, Test::Null)],
        vec![
            rejecting(Field::Status, Test::Equal(Value::Str("active"))),
            rejecting(Field::Recommendation1, Test::Equal(Value::Str("ProductD"))),
        ],
    ];
    for filter in filters {
        let growth = pair.per_record(&Query::Find(Find { filter, ..Find::default() }), Consume::Owned);
        assert!(growth < NONE, "{growth}");
    }
}

#[test]
fn a_count_and_a_distinct_over_an_index_take_no_allocation_per_record() {
    let mut pair = Pair::new();
    for name in ["count status = 'active' (indexed)", "distinct: status (indexed)"] {
        let growth = pair.per_record(&query(name), Consume::Owned);
        assert!(growth < NONE, "{growth} for {name}");
    }
}

/// The expected keys and documents of a row, given the numbers of records, matches and values.
type Reads = fn(records: u64, matching: u64) -> (u64, u64);

const READS: [(&str, Reads); 18] = [
    ("Full scan (no filter)", |records, _| (0, records)),
    // An index that matches half of the collection is not worth its fetches.
    ("status = 'active' (indexed)", |records, _| (0, records)),
    ("status = 'active' projection [status] (index-covered)", |_, matching| (matching, 0)),
    ("product_recommendation1 = 'ProductA'", |records, _| (0, records)),
    ("status='active' + sort contacts_count", |records, _| (0, records)),
    ("sort contacts_count (no take)", |records, _| (0, records)),
    ("sort [name ASC, contacts_count DESC] + take(200)", |records, _| (0, records)),
    ("last_contacted_at is null (~30%)", |records, _| (0, records)),
    ("notes is null (~50%)", |records, _| (0, records)),
    ("last_contacted_at is not null (~70%)", |records, _| (0, records)),
    ("1,000 point lookups (find_by_id)", |_, matching| (matching, matching)),
    ("projection (name, status only)", |records, _| (0, records)),
    ("tags = 'renewal_due' (array element match)", |records, _| (0, records)),
    ("count status = 'active' (indexed)", |_, matching| (matching, 0)),
    ("distinct: product_recommendation1 (not indexed)", |records, _| (0, records)),
    ("distinct: last_contacted_at (high cardinality)", |records, _| (0, records)),
    ("status='active' + take(200) (no sort)", |_, _| (200, 200)),
    ("sort contacts_count + take(200)", |_, _| (200, 200)),
];

#[test]
fn each_query_reads_the_keys_and_documents_it_needs_on_every_store() {
    let records = records(5_000);
    let rows = query_rows(5_000, SEED);
    for store in [
        "memory",
        #[cfg(feature = "redb")]
        "redb",
    ] {
        let (mut slate, _folder) = loaded(store, &records);
        for (name, reads) in READS {
            let query = &rows.iter().find(|row| row.name == name).unwrap_or_else(|| panic!("no {name}")).query;
            let matching = match Expected::of(query, &records) {
                Expected::Rows(rows) => u64::try_from(rows.matching.len()).unwrap(),
                Expected::Count(count) => count,
                expected => expected.outline().answer.count,
            };
            let work = slate.work(0, query).unwrap().unwrap();
            assert_eq!((work.keys, work.documents), reads(5_000, matching), "{name} on {store}: {}", work.plan);
        }
    }
}

#[test]
fn a_limit_and_a_distinct_over_an_index_do_not_grow_with_the_collection() {
    let names = [
        "status='active' + take(200) (no sort)",
        "sort contacts_count + take(200)",
        "distinct: status (indexed)",
        "distinct: contacts_count (indexed, ~100 values)",
    ];
    let reads = [2_000, 8_000].map(|size| {
        let (mut slate, _folder) = loaded("memory", &records(size));
        names.map(|name| {
            let work = slate.work(0, &query(name)).unwrap().unwrap();
            (work.keys, work.documents)
        })
    });
    assert_eq!(reads[0], reads[1]);
}

/// Measures the files after loading and a flush, with two indexes. The limit allows for a fifth of unused space in pages,
/// which depends on where redb splits them.
#[test]
#[cfg(feature = "redb")]
fn a_redb_file_takes_at_most_600_bytes_per_document() {
    let records = records(40_000);
    let (mut slate, _folder) = loaded("redb", &records);
    let per_document = slate.size().unwrap().unwrap() / 40_000;
    // Documents of 306 bytes on average cannot take less.
    assert!((306..=600).contains(&per_document), "{per_document} bytes per document");
}
