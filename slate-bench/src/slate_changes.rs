//! Measures the cost of the log of changes for the writes that it logs.

use std::time::Duration;

use bson::{RawDocumentBuf, doc};
use slate_bench_harness::{Repeat, Result, Row, Samples, Verdict, clock::allocating};
use slate_core::{ChangeLog, Collection, Database};

use crate::{Change, Record, slate::create_indexes};

/// Documents that each run writes.
const WRITTEN: u64 = 1_000;

/// A kind of writes, which two rows measure: with and without the log.
struct Writes {
    name: &'static str,
    /// Whether the documents are inserted before the measurement and then changed.
    changes: bool,
    run: fn(&Bench<'_>) -> Result<()>,
}

const ROWS: [Writes; 4] = [
    Writes { name: "1,000 × insert_one", changes: false, run: |bench| bench.insert_each() },
    Writes { name: "insert_many of 1,000", changes: false, run: |bench| bench.insert_together() },
    Writes { name: "1,000 × update_one of a field", changes: true, run: |bench| bench.update_each() },
    Writes { name: "1,000 × delete_one", changes: true, run: |bench| bench.delete_each() },
];

/// Measures the rows, with and without the log in turn, in a new collection that has the indexes of the others.
pub(crate) fn rows(database: &Database, seed: u64, repeat: Repeat) -> Result<Vec<Row>> {
    let collection = database.collection("logged");
    let record = |id: u64| Change::Whole(Record::new(seed, 0, id.cast_signed(), 0)).to_document();
    let bench = Bench { database, collection, documents: (0..WRITTEN).map(record).collect() };
    let pairs = ROWS.iter().map(|writes| bench.pair(writes, repeat)).collect::<Result<Vec<_>>>()?;
    bench.collection.drop()?;
    database.disable_changes()?;
    Ok(pairs.into_iter().flatten().collect())
}

struct Bench<'d> {
    database: &'d Database,
    collection: Collection<RawDocumentBuf>,
    documents: Vec<RawDocumentBuf>,
}

impl Bench<'_> {
    fn pair(&self, writes: &Writes, repeat: Repeat) -> Result<[Row; 2]> {
        let variants = ["not logged", "logged"];
        let mut allocations = [None, None];
        for (variant, counted) in variants.into_iter().zip(&mut allocations) {
            self.prepare(writes, variant)?;
            *counted = allocating(|| (writes.run)(self))?.1;
        }
        let mut samples = [Samples::default(), Samples::default()];
        while repeat.needs_another_run(&samples[0]) {
            for (variant, samples) in variants.into_iter().zip(&mut samples) {
                self.prepare(writes, variant)?;
                let (done, time) = repeat.clock.timed(|| (writes.run)(self));
                done?;
                samples.push(time);
            }
        }
        let [not_logged, logged] = &samples;
        let note = format!("{:.2} times", ratio(logged.median(), not_logged.median()));
        let notes = [None, Some(note)];
        let mut parts = variants.into_iter().zip(allocations).zip(notes);
        Ok(samples.map(|samples| {
            let ((variant, allocations), note) = parts.next().unwrap_or_default();
            let name = format!("{}, {variant}", writes.name);
            Row { samples, items: WRITTEN, allocations, note, verdict: Verdict::Right, ..Row::new(name) }
        }))
    }

    /// Empties the collection, fills it if documents are changed, and switches the log on or off.
    fn prepare(&self, writes: &Writes, variant: &str) -> Result<()> {
        self.database.disable_changes()?;
        self.collection.drop()?;
        create_indexes(&self.collection)?;
        if writes.changes {
            self.insert_together()?;
        }
        if variant == "logged" {
            self.database.enable_changes(ChangeLog::new())?;
        }
        // Not measured: the first write after the log is enabled determines the log's end.
        let first = self.documents.first();
        first.map_or(Ok(()), |first| self.database.collection("first").insert_one(first).map(drop))?;
        self.database.collection::<RawDocumentBuf>("first").drop()?;
        Ok(())
    }

    fn insert_each(&self) -> Result<()> {
        self.documents.iter().try_for_each(|document| self.collection.insert_one(document).map(drop))?;
        Ok(())
    }

    fn insert_together(&self) -> Result<()> {
        self.collection.insert_many(&self.documents).run()?;
        Ok(())
    }

    fn update_each(&self) -> Result<()> {
        for id in 0..WRITTEN.cast_signed() {
            let change = doc! { "$set": { "notes": format!("note {id}") } };
            self.collection.update_one(doc! { "_id": id }, change).run()?;
        }
        Ok(())
    }

    fn delete_each(&self) -> Result<()> {
        for id in 0..WRITTEN.cast_signed() {
            self.collection.delete_one(doc! { "_id": id }).run()?;
        }
        Ok(())
    }
}

fn ratio(time: Duration, to: Duration) -> f64 {
    time.as_secs_f64() / to.as_secs_f64().max(f64::MIN_POSITIVE)
}
