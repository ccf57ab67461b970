//! The keys and documents that each kind of plan reads, on every store, in collections of 1,000 and of 10,000 records.
//! A query of part of a collection reads no more in the larger one.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use bson::{Bson, Document, RawDocumentBuf, doc};
use common::{STORES, records};
use slate_core::{Collection, Explain, ExplainVerbosity, Find, Hint};

type Documents = Collection<RawDocumentBuf>;

/// The number of records.
const SIZES: [i32; 2] = [1_000, 10_000];

/// The operation.
#[derive(Clone, Copy)]
enum Operation {
    Find,
    Count,
    Distinct(&'static str),
}

/// A query, the stages that its plan must have, and the keys and documents that it reads by collection size.
struct Case {
    name: &'static str,
    query: fn(&Documents) -> Find<RawDocumentBuf>,
    operation: Operation,
    stages: &'static [&'static str],
    reads: fn(u64) -> (u64, u64),
}

fn by(index: &str) -> Hint {
    Hint::Name(index.into())
}

const CASES: &[Case] = &[
    Case {
        name: "scan with a filter",
        query: |c| c.find(doc! { "name": "record 0" }),
        operation: Operation::Find,
        stages: &["COLLSCAN", "FILTER"],
        reads: |n| (0, n),
    },
    Case {
        name: "limit",
        query: |c| c.find(doc! {}).limit(20),
        operation: Operation::Find,
        stages: &["COLLSCAN", "LIMIT"],
        reads: |_| (0, 20),
    },
    Case {
        name: "filter with limit",
        query: |c| c.find(doc! { "missing": null }).skip(5).limit(20),
        operation: Operation::Find,
        stages: &["COLLSCAN", "FILTER"],
        reads: |_| (0, 25),
    },
    Case {
        name: "point lookup",
        query: |c| c.find(doc! { "_id": 700 }),
        operation: Operation::Find,
        stages: &["IDHACK", "FETCH"],
        reads: |_| (1, 1),
    },
    Case {
        name: "point lookup of a missing key",
        query: |c| c.find(doc! { "_id": -1 }),
        operation: Operation::Find,
        stages: &["IDHACK", "FETCH"],
        reads: |_| (1, 0),
    },
    Case {
        name: "range of _id",
        query: |c| c.find(doc! { "_id": { "$gte": 300, "$lt": 400 } }),
        operation: Operation::Find,
        stages: &["COLLSCAN"],
        reads: |_| (0, 100),
    },
    Case {
        name: "index range",
        query: |c| c.find(doc! { "number": { "$gte": 300, "$lt": 400 } }),
        operation: Operation::Find,
        stages: &["IXSCAN", "FETCH"],
        reads: |_| (100, 100),
    },
    Case {
        name: "index range with a filter",
        query: |c| c.find(doc! { "number": { "$gte": 300, "$lt": 400 }, "notes": 1 }),
        operation: Operation::Find,
        stages: &["IXSCAN", "FETCH", "FILTER"],
        reads: |_| (100, 100),
    },
    Case {
        name: "range of a multikey index",
        query: |c| c.find(doc! { "pairs": { "$lt": 400 } }).hint(by("pairs_1")),
        operation: Operation::Find,
        stages: &["IXSCAN", "FETCH"],
        // Each record has two entries. The last record in the range has one outside it.
        reads: |_| (799, 400),
    },
    Case {
        name: "condition on an index's second field",
        query: |c| {
            c.find(doc! { "status": "active", "contacts_count": 7 }).hint(by("status_1_contacts_count_1")).limit(2)
        },
        operation: Operation::Find,
        stages: &["IXSCAN", "FETCH"],
        reads: |_| (2, 2),
    },
    Case {
        name: "sort by index with limit",
        query: |c| c.find(doc! {}).sort(doc! { "number": -1 }).limit(20),
        operation: Operation::Find,
        stages: &["IXSCAN", "FETCH"],
        reads: |_| (20, 20),
    },
    Case {
        name: "sort within groups of an index, with limit",
        query: |c| c.find(doc! {}).sort(doc! { "pair": 1, "name": 1 }).hint(by("pair_1")).limit(20),
        operation: Operation::Find,
        stages: &["IXSCAN", "FETCH", "SORT"],
        // Groups are read completely, and records in batches of doubling size.
        reads: |_| (24, 24),
    },
    Case {
        name: "top-k without an index",
        query: |c| c.find(doc! {}).sort(doc! { "name": 1 }).limit(20),
        operation: Operation::Find,
        stages: &["COLLSCAN", "SORT"],
        reads: |n| (0, n),
    },
    Case {
        name: "covered",
        query: |c| c.find(doc! { "number": { "$gte": 300, "$lt": 400 } }).projection(doc! { "number": 1 }),
        operation: Operation::Find,
        stages: &["IXSCAN", "PROJECTION_COVERED"],
        reads: |_| (100, 0),
    },
    Case {
        name: "count over an index",
        query: |c| c.find(doc! { "number": { "$gte": 300, "$lt": 400 } }),
        operation: Operation::Count,
        stages: &["IXSCAN", "COUNT_SCAN"],
        reads: |_| (100, 0),
    },
    Case {
        name: "count by scan",
        query: |c| c.find(doc! { "missing": null }),
        operation: Operation::Count,
        stages: &["COLLSCAN", "COUNT"],
        reads: |n| (0, n),
    },
    Case {
        name: "distinct over an index",
        query: |c| c.find(doc! {}),
        operation: Operation::Distinct("ten"),
        stages: &["IXSCAN"],
        // One entry of each value, and two more before the cursor seeks to the next value.
        reads: |_| (16, 0),
    },
    Case {
        name: "distinct by scan",
        query: |c| c.find(doc! {}),
        operation: Operation::Distinct("name"),
        stages: &["COLLSCAN"],
        reads: |n| (0, n),
    },
    Case {
        name: "union of two indexes",
        query: |c| {
            let (number, pair) =
                (doc! { "number": { "$gte": 0, "$lt": 50 } }, doc! { "pair": { "$gte": 200, "$lt": 225 } });
            c.find(doc! { "$or": [number, pair] })
        },
        operation: Operation::Find,
        stages: &["OR", "IXSCAN", "FETCH"],
        reads: |_| (100, 100),
    },
    Case {
        name: "intersection of two indexes",
        query: |c| c.find(doc! { "number": { "$gte": 50, "$lt": 150 }, "pair": { "$lt": 50 } }),
        operation: Operation::Find,
        stages: &["AND_SORTED", "IXSCAN", "FETCH"],
        reads: |_| (200, 50),
    },
];

fn stages(node: &Document) -> Vec<&str> {
    let inputs = node.get_array("inputs").into_iter().flatten().filter_map(Bson::as_document);
    let inputs = node.get_document("input").into_iter().chain(inputs);
    std::iter::once(node.get_str("stage").unwrap()).chain(inputs.flat_map(stages)).collect()
}

impl Case {
    fn run(&self, collection: &Documents) -> Explain {
        let find = (self.query)(collection);
        let explained = match self.operation {
            Operation::Find => find.explain(ExplainVerbosity::ExecutionStats),
            Operation::Count => find.count().explain(ExplainVerbosity::ExecutionStats),
            Operation::Distinct(path) => find.distinct(path).explain(ExplainVerbosity::ExecutionStats),
        };
        explained.unwrap()
    }
}

#[test]
fn each_kind_of_plan_reads_only_what_its_result_needs() {
    for store in STORES {
        for size in SIZES {
            let database = store.open();
            let collection = database.collection("c");
            records::fill(&collection, size);
            for case in CASES {
                let explained = case.run(&collection);
                let context = format!("{}, {store:?}, {size} records\n{explained}", case.name);
                let document = explained.to_document();
                let drawn = stages(&document);
                assert!(case.stages.iter().all(|stage| drawn.contains(stage)), "{:?}: {context}", case.stages);
                let stats = explained.execution_stats().unwrap();
                let read = (stats.keys_examined, stats.documents_examined);
                assert_eq!(read, (case.reads)(size.unsigned_abs().into()), "{context}");
            }
        }
    }
}

/// Checks the keys and documents that a query of the tickets examines.
fn check_reads(find: &Find<RawDocumentBuf>, operation: Operation, right: (u64, u64)) {
    let explained = match operation {
        Operation::Find => find.clone().explain(ExplainVerbosity::ExecutionStats),
        Operation::Count => find.clone().count().explain(ExplainVerbosity::ExecutionStats),
        Operation::Distinct(path) => find.clone().distinct(path).explain(ExplainVerbosity::ExecutionStats),
    };
    let explained = explained.unwrap();
    let stats = explained.execution_stats().unwrap();
    assert_eq!((stats.keys_examined, stats.documents_examined), right, "{explained}");
}

#[test]
fn indexes_that_begin_with_a_tenant_are_read_for_what_a_query_needs() {
    for store in STORES {
        let database = store.open();
        let tickets: Documents = database.collection("tickets");
        let ticket = |n: i32| {
            let words = [format!("w{}", n % 100), format!("w{}", n % 97), "all".into()].to_vec();
            doc! { "_id": n, "tenant": n % 5, "at": n / 7, "status": n % 3, "words": words, "title": n % 2 }
        };
        tickets.insert_many(&(0..6_000).map(|n| common::raw(&ticket(n))).collect::<Vec<_>>()).run().unwrap();
        let indexes = [
            doc! { "tenant": 1, "at": -1 },
            doc! { "tenant": 1, "words": 1, "at": -1 },
            doc! { "tenant": 1, "status": 1, "at": -1 },
            doc! { "words": 1 },
        ];
        for keys in indexes {
            tickets.create_index(slate_core::Index::on(keys)).run().unwrap();
        }
        let find = |filter: Document| tickets.find(filter);
        // Of n with n % 5 = 1: 1,200. Those with w7 have n % 97 = 7, because n % 100 = 7 is not of the tenant.
        check_reads(&find(doc! { "tenant": 1 }), Operation::Count, (1_200, 0));
        check_reads(&find(doc! { "tenant": 1, "words": "w7" }), Operation::Find, (12, 12));
        check_reads(&find(doc! { "tenant": 1, "words": "w7" }), Operation::Count, (12, 0));
        check_reads(&find(doc! { "tenant": 1, "words": { "$in": ["w7", "w6"] } }), Operation::Count, (84, 0));
        check_reads(&find(doc! { "words": "all" }), Operation::Count, (6_000, 0));
        // The order of the date, for one word.
        let by_date = doc! { "at": -1, "_id": -1 };
        let recent = find(doc! { "tenant": 1, "words": "all" }).sort(doc! { "at": -1 }).limit(25);
        check_reads(&recent, Operation::Find, (25, 25));
        // A page after a key. The entries of its date that precede it are read, and no other document.
        let after = doc! { "$or": [{ "at": { "$lt": 500 } }, { "at": 500, "_id": { "$gt": 3_501 } }] };
        let page =
            |equalities: Document| find(doc! { "$and": [equalities, after.clone()] }).sort(by_date.clone()).limit(25);
        check_reads(&page(doc! { "tenant": 1, "status": 0 }).sort(doc! { "at": -1 }), Operation::Find, (26, 25));
        check_reads(&page(doc! { "tenant": 1 }).sort(doc! { "at": -1 }), Operation::Find, (26, 25));
        // A condition on the document: as many documents as it needs, not batches of doubling size.
        let odd = doc! { "tenant": 1, "status": 0, "title": { "$gte": 0 } };
        check_reads(&page(odd).sort(doc! { "at": -1 }), Operation::Find, (26, 25));
        let odd = doc! { "tenant": 1, "status": 0, "title": 1 };
        check_reads(&page(odd).sort(doc! { "at": -1 }), Operation::Find, (51, 50));
    }
}
