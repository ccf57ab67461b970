use std::path::Path;

use redb::{Database, ReadOnlyTable, ReadableDatabase, ReadableTable, Table, TableDefinition, WriteTransaction};
use slate_bench_harness::{About, Result};
use slate_store_bench::{Direction, Durability, Feature, Outcome, Reader, Subject, Writer};

const TABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("kv");

/// redb with default settings, except for the cache size, which is Slate's.
pub struct Redb(Database);

/// Slate's default; redb's own default is 1 GiB.
const CACHE: usize = 256 << 20;

impl Redb {
    fn begin(&self, durability: Durability) -> Result<WriteTransaction> {
        let mut transaction = self.0.begin_write()?;
        transaction.set_durability(match durability {
            Durability::Deferred => redb::Durability::None,
            Durability::Sync => redb::Durability::Immediate,
        })?;
        Ok(transaction)
    }
}

impl Subject for Redb {
    type Reader<'r> = TableReader;
    type Writer<'w> = TableWriter<'w>;

    fn about() -> About {
        About {
            name: "redb".into(),
            version: "4".into(),
            settings: "one table; deferred commits are of Durability::None".into(),
        }
    }

    fn lacks() -> &'static [Feature] {
        &[]
    }

    fn open(folder: &Path) -> Result<Self> {
        let database = Database::builder().set_cache_size(CACHE).create(folder.join("data.redb"))?;
        // A table must exist before it can be read.
        let transaction = database.begin_write()?;
        transaction.open_table(TABLE)?;
        transaction.commit()?;
        Ok(Self(database))
    }

    fn read<T>(&self, work: impl FnOnce(&mut TableReader) -> Result<T>) -> Result<T> {
        work(&mut TableReader(self.0.begin_read()?.open_table(TABLE)?))
    }

    fn write(
        &self,
        durability: Durability,
        mut work: impl FnMut(&mut TableWriter<'_>) -> Result<()>,
    ) -> Result<Outcome> {
        let transaction = self.begin(durability)?;
        work(&mut TableWriter(transaction.open_table(TABLE)?))?;
        transaction.commit()?;
        Ok(Outcome::Committed)
    }

    fn roll_back(&self, work: impl FnOnce(&mut TableWriter<'_>) -> Result<()>) -> Result<()> {
        let transaction = self.begin(Durability::Deferred)?;
        work(&mut TableWriter(transaction.open_table(TABLE)?))?;
        Ok(transaction.abort()?)
    }

    fn flush(&self) -> Result<()> {
        Ok(self.begin(Durability::Sync)?.commit()?)
    }
}

/// The table of a read transaction.
pub struct TableReader(ReadOnlyTable<&'static [u8], &'static [u8]>);

impl Reader for TableReader {
    fn get<T>(&mut self, key: &[u8], look: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        Ok(self.0.get(key)?.map(|value| look(value.value())))
    }

    fn scan(&mut self, direction: Direction, mut visit: impl FnMut(&[u8], &[u8])) -> Result<()> {
        let mut entries = self.0.iter()?;
        while let Some(entry) = match direction {
            Direction::Forward => entries.next(),
            Direction::Back => entries.next_back(),
        } {
            let (key, value) = entry?;
            visit(key.value(), value.value());
        }
        Ok(())
    }

    fn scan_from(&mut self, start: &[u8], limit: usize, mut visit: impl FnMut(&[u8], &[u8])) -> Result<()> {
        for entry in self.0.range(start..)?.take(limit) {
            let (key, value) = entry?;
            visit(key.value(), value.value());
        }
        Ok(())
    }
}

/// The table of a write transaction.
pub struct TableWriter<'w>(Table<'w, &'static [u8], &'static [u8]>);

impl Writer for TableWriter<'_> {
    fn get<T>(&mut self, key: &[u8], look: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        Ok(self.0.get(key)?.map(|value| look(value.value())))
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.insert(key, value)?;
        Ok(())
    }

    fn delete_range(&mut self, start: &[u8], end: &[u8]) -> Result<()> {
        Ok(self.0.retain_in::<&[u8], _>(start..end, |_, _| false)?)
    }
}
