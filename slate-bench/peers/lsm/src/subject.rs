use std::path::Path;

use lsm_db::{Batch, Lsm, LsmConfig};
use slate_bench_harness::{About, Result, Unsupported};
use slate_store_bench::{Direction, Durability, Feature, Outcome, Reader, Subject, Writer};

/// lsm-db, opened as in its own benchmarks.
pub struct LsmDb(Lsm);

const MEMTABLE: usize = 1 << 20;

impl LsmDb {
    fn config() -> LsmConfig {
        // A high trigger keeps the runs separate for the negative lookups, as in lsm-db's own benchmark.
        LsmConfig::new().memtable_capacity(MEMTABLE).compaction_trigger(64)
    }
}

impl Subject for LsmDb {
    type Reader<'r> = LatestReader<'r>;
    type Writer<'w> = BatchWriter;

    fn about() -> About {
        let name = if cfg!(feature = "bloom") { "lsm-db with bloom" } else { "lsm-db" };
        let settings = "memtable of 1 MiB, compaction from 64 runs; what is not flushed is lost in a crash".into();
        About { name: name.into(), version: "1".into(), settings }
    }

    fn lacks() -> &'static [Feature] {
        &[Feature::Transactions, Feature::Snapshots, Feature::RangeDeletes]
    }

    fn open(folder: &Path) -> Result<Self> {
        Ok(Self(Lsm::open_with(folder, Self::config())?))
    }

    fn open_uncached(folder: &Path) -> Result<Option<Self>> {
        Ok(Some(Self(Lsm::open_with(folder, Self::config().block_cache_capacity(0))?)))
    }

    fn read<T>(&self, work: impl FnOnce(&mut LatestReader<'_>) -> Result<T>) -> Result<T> {
        work(&mut LatestReader(&self.0))
    }

    fn write(&self, durability: Durability, mut work: impl FnMut(&mut BatchWriter) -> Result<()>) -> Result<Outcome> {
        let mut writer = BatchWriter(Batch::new());
        work(&mut writer)?;
        self.0.write(writer.0)?;
        if durability == Durability::Sync {
            self.0.flush()?;
        }
        Ok(Outcome::Committed)
    }

    fn fill(&self, entries: &[(&[u8], &[u8])]) -> Result<()> {
        Ok(entries.iter().try_for_each(|(key, value)| self.0.put(key, value))?)
    }

    fn roll_back(&self, _: impl FnOnce(&mut BatchWriter) -> Result<()>) -> Result<()> {
        Err(Unsupported::because("has no transactions").into())
    }

    fn flush(&self) -> Result<()> {
        Ok(self.0.flush()?)
    }
}

/// Reads the latest state.
pub struct LatestReader<'r>(&'r Lsm);

impl Reader for LatestReader<'_> {
    fn get<T>(&mut self, key: &[u8], look: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        Ok(self.0.get(key)?.map(|value| look(&value)))
    }

    fn scan(&mut self, direction: Direction, mut visit: impl FnMut(&[u8], &[u8])) -> Result<()> {
        let entries = self.0.scan(..)?;
        match direction {
            Direction::Forward => entries.for_each(|(key, value)| visit(&key, &value)),
            Direction::Back => entries.rev().for_each(|(key, value)| visit(&key, &value)),
        }
        Ok(())
    }

    fn scan_from(&mut self, start: &[u8], limit: usize, mut visit: impl FnMut(&[u8], &[u8])) -> Result<()> {
        self.0.scan(start.to_vec()..)?.take(limit).for_each(|(key, value)| visit(&key, &value));
        Ok(())
    }
}

/// A batch of writes.
pub struct BatchWriter(Batch);

impl Writer for BatchWriter {
    fn get<T>(&mut self, _: &[u8], _: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        Err(Unsupported::because("has no transactions").into())
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.put(key, value);
        Ok(())
    }

    fn delete_range(&mut self, _: &[u8], _: &[u8]) -> Result<()> {
        Err(Unsupported::because("has no range deletes").into())
    }
}
