use std::path::Path;

use rocksdb::{
    DBRawIteratorWithThreadMode, ErrorKind, OptimisticTransactionDB, Options, ReadOptions, SnapshotWithThreadMode,
    Transaction, WriteOptions,
};
use slate_bench_harness::{About, Result, Unsupported};
use slate_store_bench::{Direction, Durability, Feature, Outcome, Reader, Subject, Writer};

/// RocksDB with optimistic transactions and default settings, except for the recommended filter.
pub struct RocksDb(OptimisticTransactionDB);

const FILTER_BITS: f64 = 10.0;
const CACHE: usize = 256 << 20;

impl Subject for RocksDb {
    type Reader<'r> = SnapshotReader<'r>;
    type Writer<'w> = TransactionWriter<'w>;

    fn about() -> About {
        let settings = "optimistic transactions, whole-key filter, 256 MiB of cache, else default settings".into();
        About { name: "rocksdb".into(), version: "0.25 (bindings)".into(), settings }
    }

    /// Range deletes are not part of RocksDB's transactions.
    fn lacks() -> &'static [Feature] {
        &[Feature::RangeDeletes]
    }

    fn open(folder: &Path) -> Result<Self> {
        let mut blocks = rocksdb::BlockBasedOptions::default();
        blocks.set_bloom_filter(FILTER_BITS, false);
        blocks.set_block_cache(&rocksdb::Cache::new_lru_cache(CACHE));
        let mut options = Options::default();
        options.create_if_missing(true);
        options.set_block_based_table_factory(&blocks);
        Ok(Self(OptimisticTransactionDB::open(&options, folder)?))
    }

    fn read<T>(&self, work: impl FnOnce(&mut SnapshotReader<'_>) -> Result<T>) -> Result<T> {
        work(&mut SnapshotReader(self.0.snapshot()))
    }

    fn write(
        &self,
        durability: Durability,
        mut work: impl FnMut(&mut TransactionWriter<'_>) -> Result<()>,
    ) -> Result<Outcome> {
        let mut options = WriteOptions::default();
        options.set_sync(durability == Durability::Sync);
        let mut writer =
            TransactionWriter(self.0.transaction_opt(&options, &rocksdb::OptimisticTransactionOptions::new()));
        work(&mut writer)?;
        match writer.0.commit() {
            Ok(()) => Ok(Outcome::Committed),
            Err(error) if matches!(error.kind(), ErrorKind::Busy | ErrorKind::TryAgain) => Ok(Outcome::Conflict),
            Err(error) => Err(error.into()),
        }
    }

    fn roll_back(&self, work: impl FnOnce(&mut TransactionWriter<'_>) -> Result<()>) -> Result<()> {
        let mut writer = TransactionWriter(self.0.transaction());
        work(&mut writer)?;
        Ok(writer.0.rollback()?)
    }

    fn flush(&self) -> Result<()> {
        Ok(self.0.flush_wal(true)?)
    }
}

/// A snapshot.
pub struct SnapshotReader<'r>(SnapshotWithThreadMode<'r, OptimisticTransactionDB>);

impl SnapshotReader<'_> {
    fn entries(&self) -> DBRawIteratorWithThreadMode<'_, OptimisticTransactionDB> {
        self.0.raw_iterator_opt(ReadOptions::default())
    }
}

impl Reader for SnapshotReader<'_> {
    fn get<T>(&mut self, key: &[u8], look: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        Ok(self.0.get_pinned(key)?.map(|value| look(&value)))
    }

    fn get_many(&mut self, keys: &[&[u8]], mut look: impl FnMut(usize, &[u8])) -> Result<()> {
        for (place, value) in self.0.multi_get(keys).into_iter().enumerate() {
            if let Some(value) = value? {
                look(place, &value);
            }
        }
        Ok(())
    }

    fn scan(&mut self, direction: Direction, mut visit: impl FnMut(&[u8], &[u8])) -> Result<()> {
        let mut entries = self.entries();
        match direction {
            Direction::Forward => entries.seek_to_first(),
            Direction::Back => entries.seek_to_last(),
        }
        while let Some((key, value)) = entries.item() {
            visit(key, value);
            match direction {
                Direction::Forward => entries.next(),
                Direction::Back => entries.prev(),
            }
        }
        Ok(entries.status()?)
    }

    fn scan_from(&mut self, start: &[u8], limit: usize, mut visit: impl FnMut(&[u8], &[u8])) -> Result<()> {
        let (mut entries, mut left) = (self.entries(), limit);
        entries.seek(start);
        while left > 0
            && let Some((key, value)) = entries.item()
        {
            visit(key, value);
            left -= 1;
            entries.next();
        }
        Ok(entries.status()?)
    }
}

/// An open transaction.
pub struct TransactionWriter<'w>(Transaction<'w, OptimisticTransactionDB>);

impl Writer for TransactionWriter<'_> {
    fn get<T>(&mut self, key: &[u8], look: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        // Reads for update, so that a concurrent commit of this key is a conflict.
        Ok(self.0.get_pinned_for_update(key, true)?.map(|value| look(&value)))
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        Ok(self.0.put(key, value)?)
    }

    fn delete_range(&mut self, _: &[u8], _: &[u8]) -> Result<()> {
        Err(Unsupported::because("has no range deletes in transactions").into())
    }
}
