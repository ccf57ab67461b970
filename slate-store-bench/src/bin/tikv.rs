//! The bare store on a cluster of TiKV, used by several processes at once.

use std::{process::ExitCode, time::Duration};

use slate_bench_harness::{
    Result, Rng,
    processes::{self, Counts},
};
use slate_store::{
    Bounds, Cursor, Durability, Edge, Keyspace, PointReader, Store, Transaction, TransactionExt, View,
    tikv::{Address, Options, TikvStore},
};

fn main() -> ExitCode {
    processes::main("slate-store-bench-tikv", |url| {
        Ok(Client { store: TikvStore::open(&Address::parse(url)?, &Options::default())?, retries: 0 })
    })
}

struct Client {
    store: TikvStore,
    retries: u64,
}

const ROWS: Keyspace = Keyspace(1);
const WAIT: Duration = Duration::from_secs(30);

/// Number of keys of a batch.
const BATCH: u64 = 1_000;

/// Number of entries of a scan.
const SCANNED: u64 = 1_000;

fn value() -> [u8; 200] {
    [7; 200]
}

impl Client {
    fn put(&self, keys: impl Iterator<Item = u64>) -> Result<()> {
        let mut transaction = self.store.begin(WAIT)?;
        for key in keys {
            transaction.put(ROWS, &key.to_be_bytes(), &value())?;
        }
        transaction.commit(Durability::Sync)?;
        Ok(())
    }
}

impl processes::Client for Client {
    const OPERATIONS: &'static [&'static str] =
        &["get one", "load 100", "scan 1,000", "commit one put", "commit 100 puts", "read and write one"];

    fn prepare(&self, records: u64) -> Result<()> {
        processes::batches(records, BATCH).try_for_each(|batch| self.put(batch))
    }

    fn execute(&mut self, operation: usize, records: u64, rng: &mut Rng) -> Result<()> {
        let key = rng.below(records);
        match operation {
            0 => {
                self.store.snapshot()?.get(ROWS, &key.to_be_bytes(), <[u8]>::len)?.ok_or("a key is missing")?;
            }
            1 => {
                let keys: Vec<[u8; 8]> = (0..100).map(|_| rng.below(records).to_be_bytes()).collect();
                let wanted: Vec<(Keyspace, &[u8])> = keys.iter().map(|key| (ROWS, &key[..])).collect();
                let mut reader = self.store.snapshot()?.point_reader()?;
                reader.load(&wanted)?;
                if (0..wanted.len()).any(|at| reader.loaded(at).is_none()) {
                    return Err("a key is missing".into());
                }
            }
            2 => {
                let start = rng.below(records.saturating_sub(SCANNED).max(1)).to_be_bytes();
                let mut cursor = self.store.snapshot()?.cursor(ROWS, Bounds { start: Some(&start), end: None })?;
                let mut more = cursor.seek(Edge::First)?;
                for _ in 1..SCANNED {
                    if !more {
                        break;
                    }
                    more = cursor.step_forward()?;
                }
            }
            3 => self.put([processes::unused(records, rng)].into_iter())?,
            4 => self.put((0..100).map(|_| processes::unused(records, rng)))?,
            _ => loop {
                let mut transaction = self.store.begin(WAIT)?;
                transaction.view().get(ROWS, &key.to_be_bytes(), <[u8]>::len)?;
                transaction.put(ROWS, &key.to_be_bytes(), &value())?;
                match transaction.commit(Durability::Sync) {
                    Err(error) if error.is_retryable() => self.retries += 1,
                    committed => {
                        committed?;
                        break;
                    }
                }
            },
        }
        Ok(())
    }

    fn counts(&self) -> Counts {
        let (round_trips, requests) = (self.store.round_trips(), self.store.requests());
        let [round_trips, requests] = [round_trips, requests].map(Option::unwrap_or_default);
        Counts { round_trips, requests, retries: self.retries }
    }
}
