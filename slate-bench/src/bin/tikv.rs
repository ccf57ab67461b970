//! Slate's database on a cluster of TiKV, used by several processes at once.

use std::process::ExitCode;

use bson::{Document, doc};
use slate_bench_harness::{
    Result, Rng,
    processes::{self, Counts},
};
use slate_core::{Collection, Database, Index};

fn main() -> ExitCode {
    processes::main("slate-bench-tikv", |url| Ok(Client { db: Database::open(url)? }))
}

struct Client {
    db: Database,
}

/// Number of documents of one insert.
const BATCH: u64 = 1_000;

/// Number of documents that have one value of `group`.
const GROUP: u64 = 100;

fn number(of: u64) -> i64 {
    i64::try_from(of).unwrap_or(i64::MAX)
}

fn record(id: impl Into<bson::Bson>, n: u64, records: u64) -> Document {
    let groups = (records / GROUP).max(1);
    doc! { "_id": id, "group": number(n % groups), "unique": number(n), "count": 0_i64, "notes": "x".repeat(200) }
}

impl Client {
    fn rows(&self) -> Collection<Document> {
        self.db.collection("rows")
    }
}

impl processes::Client for Client {
    const OPERATIONS: &'static [&'static str] = &[
        "find one by _id",
        "find 100 through an index",
        "insert one",
        "insert 100",
        "update one by _id",
        "count 100 through an index",
    ];

    fn prepare(&self, records: u64) -> Result<()> {
        self.rows().create_index(Index::on(doc! { "group": 1 })).run()?;
        self.rows().create_index(Index::on(doc! { "unique": 1 }).unique()).run()?;
        for batch in processes::batches(records, BATCH) {
            let batch: Vec<Document> = batch.map(|n| record(number(n), n, records)).collect();
            self.rows().insert_many(&batch).run()?;
        }
        Ok(self.rows().analyze()?)
    }

    fn execute(&mut self, operation: usize, records: u64, rng: &mut Rng) -> Result<()> {
        let rows = self.rows();
        let id = number(rng.below(records));
        let group = doc! { "group": number(rng.below((records / GROUP).max(1))) };
        // Inserted documents belong to no group, so that the sizes of the groups do not change.
        let mut inserted = || {
            let n = processes::unused(records, rng);
            let mut document = record(format!("{n:x}"), n, records);
            document.insert("group", -1_i64);
            document
        };
        let is_right = match operation {
            0 => rows.find_by_id(id)?.is_some(),
            1 => rows.find(group).run()?.try_fold(0, |found, row| row.map(|_| found + 1))? > 0,
            2 => {
                rows.insert_one(&inserted())?;
                true
            }
            3 => rows.insert_many(&(0..100).map(|_| inserted()).collect::<Vec<_>>()).run()?.inserted_ids.len() == 100,
            4 => rows.update_one(doc! { "_id": id }, doc! { "$inc": { "count": 1_i64 } }).run()?.modified == 1,
            _ => rows.count_documents(group).run()? > 0,
        };
        if is_right { Ok(()) } else { Err(format!("operation {operation} had a wrong result").into()) }
    }

    fn counts(&self) -> Counts {
        let metrics = self.db.metrics();
        let (round_trips, requests) = (metrics.round_trips.unwrap_or_default(), metrics.requests.unwrap_or_default());
        Counts { round_trips, requests, retries: metrics.retries }
    }
}
