//! Compares Slate's async API with the blocking one.

use std::{
    sync::{Arc, Barrier, OnceLock},
    time::{Duration, Instant},
};

use bson::{DateTime, doc};
use slate_bench_harness::{Repeat, Result, Rng, Row, Samples, Verdict, number};
use slate_core::{Database, aio};
use tokio::runtime::{self, Runtime};

use crate::{TypedRecord, workload::ASYNC};

type Typed = TypedRecord<DateTime>;

/// Number of concurrent threads, and of concurrent tasks.
const PARTIES: u64 = 64;
/// Calls of each thread or task: of every ten, nine read by `_id` and one updates.
const CALLS: u64 = 50;
const LOOKUPS: usize = 1_000;

/// Measures blocking and awaited calls on one collection of `size` records.
pub(crate) fn rows(database: &Database, name: &str, size: u64, repeat: Repeat) -> Result<Vec<(&'static str, Row)>> {
    let runtime = runtime::Builder::new_multi_thread().build()?;
    let bench = Bench { database, name, size, repeat, runtime };
    let rows = [
        bench.pair("1,000 find_by_id into a struct", number::count(LOOKUPS), Bench::lookups, Bench::awaited_lookups)?,
        bench.pair("scan into a struct of ten fields", size, Bench::scan, Bench::stream)?,
        bench.pair("64 readers and writers", PARTIES * CALLS, Bench::threads, Bench::tasks)?,
    ];
    Ok(rows.into_iter().flatten().map(|row| (ASYNC, row)).collect())
}

struct Bench<'d> {
    database: &'d Database,
    name: &'d str,
    size: u64,
    repeat: Repeat,
    runtime: Runtime,
}

impl Bench<'_> {
    /// Measures two rows in alternation.
    fn pair(
        &self,
        name: &str,
        items: u64,
        blocking: fn(&Self) -> Result<Duration>,
        awaited: fn(&Self) -> Result<Duration>,
    ) -> Result<[Row; 2]> {
        let mut samples = [Samples::default(), Samples::default()];
        blocking(self)?;
        awaited(self)?;
        let [first, second] = &mut samples;
        while self.repeat.needs_another_run(first) {
            first.push(blocking(self)?);
            second.push(awaited(self)?);
        }
        let mut variants = ["blocking", "awaited"].into_iter();
        Ok(samples.map(|samples| {
            let row = Row { samples, items, verdict: Verdict::Right, ..Row::new(name) };
            row.variant(variants.next().unwrap_or_default())
        }))
    }

    fn blocking(&self) -> slate_core::Collection<Typed> {
        self.database.collection(self.name)
    }

    fn awaited(&self) -> aio::Collection<Typed> {
        aio::Database::from(self.database.clone()).collection(self.name)
    }

    fn ids(&self, party: u64, count: usize) -> Vec<i64> {
        let mut rng = Rng::of(party, &[0xA51]);
        (0..count).map(|_| rng.below(self.size).cast_signed()).collect()
    }

    fn lookups(&self) -> Result<Duration> {
        let (collection, ids) = (self.blocking(), self.ids(0, LOOKUPS));
        let begin = Instant::now();
        for id in ids {
            found(collection.find_by_id(id)?)?;
        }
        Ok(begin.elapsed())
    }

    fn awaited_lookups(&self) -> Result<Duration> {
        let (collection, ids) = (self.awaited(), self.ids(0, LOOKUPS));
        self.on_runtime(async move {
            for id in ids {
                found(collection.find_by_id(id).await?)?;
            }
            Ok(())
        })
    }

    fn scan(&self) -> Result<Duration> {
        let collection = self.blocking();
        let begin = Instant::now();
        let mut read = 0;
        for record in collection.find(doc! {}).run()? {
            read += u64::from(record?.id >= 0);
        }
        all(read, self.size)?;
        Ok(begin.elapsed())
    }

    fn stream(&self) -> Result<Duration> {
        let (collection, size) = (self.awaited(), self.size);
        self.on_runtime(async move {
            let mut records = collection.find(doc! {}).run().await?;
            let mut read = 0;
            while let Some(record) = records.next().await {
                read += u64::from(record?.id >= 0);
            }
            all(read, size)
        })
    }

    /// Runs one task on the runtime until it ends.
    fn on_runtime(&self, work: impl Future<Output = Result<()>> + Send + 'static) -> Result<Duration> {
        let task = async move {
            let begin = Instant::now();
            work.await.map(|()| begin.elapsed())
        };
        self.runtime.block_on(self.runtime.spawn(task))?
    }

    fn threads(&self) -> Result<Duration> {
        let (start, begun) = (Barrier::new(usize::try_from(PARTIES)?), OnceLock::new());
        std::thread::scope(|threads| {
            let parties: Vec<_> = (0..PARTIES)
                .map(|party| {
                    let (collection, start, begun) = (self.blocking(), &start, &begun);
                    threads.spawn(move || {
                        start.wait();
                        begun.get_or_init(Instant::now);
                        for (call, id) in self.ids(party, usize::try_from(CALLS)?).into_iter().enumerate() {
                            if call % 10 == 9 {
                                collection.update_one(doc! { "_id": id }, doc! { "$inc": { "visits": 1 } }).run()?;
                            } else {
                                found(collection.find_by_id(id)?)?;
                            }
                        }
                        Ok(())
                    })
                })
                .collect();
            for party in parties {
                let done: Result<()> = party.join().map_err(|_| "a thread panicked")?;
                done?;
            }
            Ok(begun.get().map_or(Duration::ZERO, Instant::elapsed))
        })
    }

    fn tasks(&self) -> Result<Duration> {
        let collection = Arc::new(self.awaited());
        let ids: Vec<_> =
            (0..PARTIES).map(|party| Ok(self.ids(party, usize::try_from(CALLS)?))).collect::<Result<_>>()?;
        self.on_runtime(async move {
            let spawn = |ids: Vec<i64>| {
                let collection = Arc::clone(&collection);
                tokio::spawn(async move {
                    for (call, id) in ids.into_iter().enumerate() {
                        if call % 10 == 9 {
                            collection.update_one(doc! { "_id": id }, doc! { "$inc": { "visits": 1 } }).await?;
                        } else {
                            found(collection.find_by_id(id).await?)?;
                        }
                    }
                    Ok::<(), slate_bench_harness::Failure>(())
                })
            };
            let parties: Vec<_> = ids.into_iter().map(spawn).collect();
            for party in parties {
                party.await??;
            }
            Ok(())
        })
    }
}

fn found<T>(record: Option<T>) -> Result<()> {
    record.map(drop).ok_or_else(|| "a record was not found".into())
}

fn all(read: u64, size: u64) -> Result<()> {
    if read == size { Ok(()) } else { Err(format!("{read} records of {size} were read").into()) }
}
