use std::{cell::RefCell, path::Path};

use slate_bench_harness::{About, Failure, Result, Unsupported};
use slate_store_bench::{Direction, Durability, Feature, Outcome, Reader, Subject, Writer};
use sled::{
    Db, IVec,
    transaction::{ConflictableTransactionError, TransactionError, TransactionalTree, UnabortableTransactionError},
};

/// sled with default settings.
pub struct Sled(Db);

impl Subject for Sled {
    type Reader<'r> = LatestReader<'r>;
    type Writer<'w> = TransactionWriter<'w>;

    fn about() -> About {
        About { name: "sled".into(), version: "0.34".into(), settings: "default settings".into() }
    }

    fn lacks() -> &'static [Feature] {
        &[Feature::Snapshots, Feature::RangeDeletes]
    }

    fn open(folder: &Path) -> Result<Self> {
        Ok(Self(sled::open(folder)?))
    }

    fn read<T>(&self, work: impl FnOnce(&mut LatestReader<'_>) -> Result<T>) -> Result<T> {
        work(&mut LatestReader(&self.0))
    }

    /// sled retries until the transaction commits.
    fn write(
        &self,
        durability: Durability,
        work: impl FnMut(&mut TransactionWriter<'_>) -> Result<()>,
    ) -> Result<Outcome> {
        self.transact(work)?;
        if durability == Durability::Sync {
            self.0.flush()?;
        }
        Ok(Outcome::Committed)
    }

    fn fill(&self, entries: &[(&[u8], &[u8])]) -> Result<()> {
        Ok(entries.iter().try_for_each(|(key, value)| self.0.insert(key, *value).map(drop))?)
    }

    fn roll_back(&self, work: impl FnOnce(&mut TransactionWriter<'_>) -> Result<()>) -> Result<()> {
        let mut work = Some(work);
        let work = move |writer: &mut TransactionWriter<'_>| {
            work.take().map_or(Ok(()), |work| work(writer))?;
            Err(RolledBack.into())
        };
        match self.transact(work) {
            Err(failure) if failure.is::<RolledBack>() => Ok(()),
            other => other,
        }
    }

    fn flush(&self) -> Result<()> {
        self.0.flush()?;
        Ok(())
    }
}

impl Sled {
    fn transact(&self, work: impl FnMut(&mut TransactionWriter<'_>) -> Result<()>) -> Result<()> {
        let work = RefCell::new(work);
        let done = self.0.transaction(|tree| {
            let mut writer = TransactionWriter { tree, conflict: None };
            let done = (work.borrow_mut())(&mut writer);
            match (done, writer.conflict) {
                (_, Some(conflict)) => Err(conflict.into()),
                (Ok(()), None) => Ok(()),
                (Err(failure), None) => Err(ConflictableTransactionError::Abort(failure)),
            }
        });
        done.map_err(|error| match error {
            TransactionError::Abort(failure) => failure,
            TransactionError::Storage(error) => error.into(),
        })
    }
}

/// The error that rolls back a transaction.
#[derive(Debug)]
struct RolledBack;

impl std::fmt::Display for RolledBack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("rolled back")
    }
}

impl std::error::Error for RolledBack {}

/// Reads the latest state.
pub struct LatestReader<'r>(&'r Db);

impl Reader for LatestReader<'_> {
    fn get<T>(&mut self, key: &[u8], look: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        Ok(self.0.get(key)?.map(|value| look(&value)))
    }

    fn scan(&mut self, direction: Direction, mut visit: impl FnMut(&[u8], &[u8])) -> Result<()> {
        let mut entries = self.0.iter();
        while let Some(entry) = match direction {
            Direction::Forward => entries.next(),
            Direction::Back => entries.next_back(),
        } {
            let (key, value) = entry?;
            visit(&key, &value);
        }
        Ok(())
    }

    fn scan_from(&mut self, start: &[u8], limit: usize, mut visit: impl FnMut(&[u8], &[u8])) -> Result<()> {
        for entry in self.0.range(start..).take(limit) {
            let (key, value) = entry?;
            visit(&key, &value);
        }
        Ok(())
    }
}

/// An open transaction, and the conflict error that a call returned: sled requires the closure to return it, too.
pub struct TransactionWriter<'w> {
    tree: &'w TransactionalTree,
    conflict: Option<UnabortableTransactionError>,
}

impl TransactionWriter<'_> {
    fn check<T>(&mut self, result: std::result::Result<T, UnabortableTransactionError>) -> Result<T> {
        result.map_err(|error| {
            self.conflict = Some(error);
            Failure::from("sled stopped the transaction")
        })
    }
}

impl Writer for TransactionWriter<'_> {
    fn get<T>(&mut self, key: &[u8], look: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        let value = self.tree.get(key);
        Ok(self.check(value)?.map(|value| look(&value)))
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let done = self.tree.insert(key, IVec::from(value));
        self.check(done).map(drop)
    }

    fn delete_range(&mut self, _: &[u8], _: &[u8]) -> Result<()> {
        Err(Unsupported::because("has no range deletes").into())
    }
}
