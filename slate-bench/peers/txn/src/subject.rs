use std::path::Path;

use slate_bench_harness::{About, Result, Unsupported};
use slate_store_bench::{Direction, Durability, Feature, Outcome, Reader, Subject, Writer};
use txn_db::{Db, Snapshot, Transaction};

/// txn-db, in memory.
pub struct Txn(Db);

impl Subject for Txn {
    type Reader<'r> = SnapshotReader;
    type Writer<'w> = TransactionWriter;

    fn about() -> About {
        About { name: "txn-db".into(), version: "1".into(), settings: "in memory".into() }
    }

    fn lacks() -> &'static [Feature] {
        &[Feature::Scans, Feature::BackwardScans, Feature::RangeDeletes, Feature::Files]
    }

    fn open(_: &Path) -> Result<Self> {
        Ok(Self(Db::new()))
    }

    fn read<T>(&self, work: impl FnOnce(&mut SnapshotReader) -> Result<T>) -> Result<T> {
        work(&mut SnapshotReader(self.0.snapshot()))
    }

    fn write(&self, _: Durability, mut work: impl FnMut(&mut TransactionWriter) -> Result<()>) -> Result<Outcome> {
        let mut writer = TransactionWriter(self.0.begin());
        work(&mut writer)?;
        match writer.0.commit() {
            Ok(_) => Ok(Outcome::Committed),
            Err(error) if error.is_retryable() => Ok(Outcome::Conflict),
            Err(error) => Err(error.into()),
        }
    }

    fn roll_back(&self, work: impl FnOnce(&mut TransactionWriter) -> Result<()>) -> Result<()> {
        let mut writer = TransactionWriter(self.0.begin());
        work(&mut writer)?;
        writer.0.rollback();
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }
}

/// A snapshot.
pub struct SnapshotReader(Snapshot);

impl Reader for SnapshotReader {
    fn get<T>(&mut self, key: &[u8], look: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        Ok(self.0.get(key)?.map(|value| look(&value)))
    }

    fn scan(&mut self, _: Direction, _: impl FnMut(&[u8], &[u8])) -> Result<()> {
        Err(no_scans())
    }

    fn scan_from(&mut self, _: &[u8], _: usize, _: impl FnMut(&[u8], &[u8])) -> Result<()> {
        Err(no_scans())
    }
}

/// An open transaction, which takes owned keys and values.
pub struct TransactionWriter(Transaction);

impl Writer for TransactionWriter {
    fn get<T>(&mut self, key: &[u8], look: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        Ok(self.0.get(key)?.map(|value| look(&value)))
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.put(key, value);
        Ok(())
    }

    fn delete_range(&mut self, _: &[u8], _: &[u8]) -> Result<()> {
        Err(no_scans())
    }
}

fn no_scans() -> slate_bench_harness::Failure {
    Unsupported::because("has no scans").into()
}
