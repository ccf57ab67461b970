//! A tour of Slate: 100,000 records in memory and on disk, and every kind of query with its plan.
//!
//! ```text
//! cargo run --release --example tour [-- --records N]
//! ```

mod queries;
mod records;
mod show;

use std::{error::Error, time::Instant};

use bson::{RawDocumentBuf, doc};
use records::Record;
use show::{Show, grouped};
use slate_core::{Database, Durability, Index};

fn main() -> Result<(), Box<dyn Error>> {
    let count = arguments()?;
    let folder = tempfile::tempdir()?;
    let redb = format!("redb:{}", folder.path().join("tour.slate").display());
    for url in ["memory:", &redb] {
        tour(url, count)?;
    }
    Ok(())
}

fn arguments() -> Result<usize, Box<dyn Error>> {
    use lexopt::{Arg::Long, ValueExt};

    let mut count = 100_000;
    let mut arguments = lexopt::Parser::from_env();
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("records") => count = arguments.value()?.parse()?,
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(count)
}

/// Runs the tour on one store.
fn tour(url: &str, count: usize) -> Result<(), Box<dyn Error>> {
    let show = Show::new();
    let db = Database::builder(url).durability(Durability::Deferred).open()?;
    show.title(&format!("{} ({})", db.store(), url.split(':').next().unwrap_or(url)));

    let records = db.collection::<Record>("records");
    load(&db, count, &show)?;
    for keys in [doc! { "status": 1 }, doc! { "contacts_count": 1 }] {
        let started = Instant::now();
        let name = records.create_index(Index::on(keys)).run()?;
        show.fact(&format!("index {name} built"), started.elapsed());
    }

    for query in queries::all() {
        show.query(&records, &query)?;
    }
    transaction(&db, &show)?;
    if db.store() != "memory" {
        db.flush()?;
        drop((records, db));
        reopen(url, &show)?;
    }
    Ok(())
}

/// Inserts the records in batches, one transaction per batch.
fn load(db: &Database, count: usize, show: &Show) -> Result<(), Box<dyn Error>> {
    let records = db.collection::<RawDocumentBuf>("records");
    let bar = show.progress(count, "inserting");
    let started = Instant::now();
    let mut made = records::Maker::new(42);
    for start in (0..count).step_by(10_000) {
        let batch: Vec<RawDocumentBuf> =
            (start..count.min(start + 10_000)).map(|id| made.raw(id)).collect::<Result<_, _>>()?;
        records.insert_many(&batch).run()?;
        bar.inc(u64::try_from(batch.len())?);
    }
    bar.finish_and_clear();
    show.fact(&format!("{} records inserted, one commit per 10,000", show::grouped(count)), started.elapsed());
    Ok(())
}

/// Moves contacts from one record to another in a transaction.
fn transaction(db: &Database, show: &Show) -> Result<(), Box<dyn Error>> {
    let started = Instant::now();
    db.transact(|tx| {
        let records = tx.collection::<Record>("records");
        records.update_one(doc! { "_id": 1 }, doc! { "$inc": { "contacts_count": -1 } }).run()?;
        records.update_one(doc! { "_id": 2 }, doc! { "$inc": { "contacts_count": 1 } }).run()?;
        let log = tx.collection::<RawDocumentBuf>("log");
        log.insert_one(&bson::rawdoc! { "moved": 1, "from": 1, "to": 2 })
    })?;
    show.fact("a transaction over two collections", started.elapsed());

    let dropped = db.begin()?;
    dropped.collection::<Record>("records").delete_many(doc! {}).run()?;
    drop(dropped);
    let left = grouped(usize::try_from(db.collection::<Record>("records").count_documents(doc! {}).run()?)?);
    show.note(&format!("rolled back a transaction that deleted everything: {left} records remain"));
    Ok(())
}

/// Closes and reopens the file.
fn reopen(url: &str, show: &Show) -> Result<(), Box<dyn Error>> {
    let started = Instant::now();
    let db = Database::open(url)?;
    let records = db.collection::<Record>("records");
    let (count, indexes) =
        (grouped(usize::try_from(records.count_documents(doc! {}).run()?)?), records.list_indexes()?.len());
    show.fact(&format!("reopened: {count} records, {indexes} indexes"), started.elapsed());
    if let Some(bytes) = db.size()?.on_disk {
        show.note(&format!("the file takes {} MB", bytes / 1_000_000));
    }
    Ok(())
}
