use std::path::Path;

use fjall::{
    Guard, KeyspaceCreateOptions, OptimisticTxDatabase, OptimisticTxKeyspace, OptimisticWriteTx, PersistMode, Readable,
    Snapshot,
};
use slate_bench_harness::{About, Result, Unsupported};
use slate_store_bench::{Direction, Durability, Feature, Outcome, Reader, Subject, Writer};

/// fjall with optimistic transactions and default settings.
pub struct Fjall {
    database: OptimisticTxDatabase,
    keyspace: OptimisticTxKeyspace,
}

impl Subject for Fjall {
    type Reader<'r> = SnapshotReader<'r>;
    type Writer<'w> = TransactionWriter<'w>;

    fn about() -> About {
        let settings = "optimistic transactions, default settings; deferred commits are of PersistMode::Buffer".into();
        About { name: "fjall".into(), version: "3".into(), settings }
    }

    fn lacks() -> &'static [Feature] {
        &[Feature::RangeDeletes]
    }

    fn open(folder: &Path) -> Result<Self> {
        let database = OptimisticTxDatabase::builder(folder).open()?;
        let keyspace = database.keyspace("kv", KeyspaceCreateOptions::default)?;
        Ok(Self { database, keyspace })
    }

    fn read<T>(&self, work: impl FnOnce(&mut SnapshotReader<'_>) -> Result<T>) -> Result<T> {
        work(&mut SnapshotReader { snapshot: self.database.read_tx(), keyspace: &self.keyspace })
    }

    fn write(
        &self,
        durability: Durability,
        mut work: impl FnMut(&mut TransactionWriter<'_>) -> Result<()>,
    ) -> Result<Outcome> {
        let mode = match durability {
            Durability::Deferred => PersistMode::Buffer,
            Durability::Sync => PersistMode::SyncAll,
        };
        let transaction = self.database.write_tx()?.durability(Some(mode));
        let mut writer = TransactionWriter { transaction, keyspace: &self.keyspace };
        work(&mut writer)?;
        Ok(match writer.transaction.commit()? {
            Ok(()) => Outcome::Committed,
            Err(_) => Outcome::Conflict,
        })
    }

    fn roll_back(&self, work: impl FnOnce(&mut TransactionWriter<'_>) -> Result<()>) -> Result<()> {
        let mut writer = TransactionWriter { transaction: self.database.write_tx()?, keyspace: &self.keyspace };
        work(&mut writer)?;
        writer.transaction.rollback();
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        Ok(self.database.persist(PersistMode::SyncAll)?)
    }
}

/// A snapshot.
pub struct SnapshotReader<'r> {
    snapshot: Snapshot,
    keyspace: &'r OptimisticTxKeyspace,
}

impl Reader for SnapshotReader<'_> {
    fn get<T>(&mut self, key: &[u8], look: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        Ok(self.snapshot.get(self.keyspace, key)?.map(|value| look(&value)))
    }

    fn scan(&mut self, direction: Direction, visit: impl FnMut(&[u8], &[u8])) -> Result<()> {
        let entries = self.snapshot.iter(self.keyspace);
        match direction {
            Direction::Forward => each(entries, visit),
            Direction::Back => each(entries.rev(), visit),
        }
    }

    fn scan_from(&mut self, start: &[u8], limit: usize, visit: impl FnMut(&[u8], &[u8])) -> Result<()> {
        each(self.snapshot.range(self.keyspace, start..).take(limit), visit)
    }
}

fn each(entries: impl Iterator<Item = Guard>, mut visit: impl FnMut(&[u8], &[u8])) -> Result<()> {
    for entry in entries {
        let (key, value) = entry.into_inner()?;
        visit(&key, &value);
    }
    Ok(())
}

/// An open transaction.
pub struct TransactionWriter<'w> {
    transaction: OptimisticWriteTx,
    keyspace: &'w OptimisticTxKeyspace,
}

impl Writer for TransactionWriter<'_> {
    fn get<T>(&mut self, key: &[u8], look: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        Ok(self.transaction.get(self.keyspace, key)?.map(|value| look(&value)))
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.transaction.insert(self.keyspace, key, value);
        Ok(())
    }

    fn delete_range(&mut self, _: &[u8], _: &[u8]) -> Result<()> {
        Err(Unsupported::because("has no range deletes").into())
    }
}
