use std::path::Path;

use byodb_rust::{DB, RTxn, RWTxn};
use slate_bench_harness::{About, Result, Unsupported};
use slate_store_bench::{Direction, Durability, Feature, Outcome, Reader, Subject, Writer};

/// byodb with default settings.
pub struct Byodb(DB);

impl Subject for Byodb {
    type Reader<'r> = ReadTransaction<'r>;
    type Writer<'w> = WriteTransaction<'w>;

    fn about() -> About {
        About { name: "byodb-rust".into(), version: "0.2".into(), settings: "default settings".into() }
    }

    fn lacks() -> &'static [Feature] {
        &[Feature::BackwardScans, Feature::RangeDeletes]
    }

    fn open(folder: &Path) -> Result<Self> {
        Ok(Self(DB::open_or_create(folder.join("data.byodb"))?))
    }

    fn read<T>(&self, work: impl FnOnce(&mut ReadTransaction<'_>) -> Result<T>) -> Result<T> {
        let transaction = self.0.r_txn();
        work(&mut ReadTransaction(&transaction))
    }

    fn write(&self, _: Durability, mut work: impl FnMut(&mut WriteTransaction<'_>) -> Result<()>) -> Result<Outcome> {
        let mut writer = WriteTransaction(self.0.rw_txn());
        work(&mut writer)?;
        writer.0.commit();
        Ok(Outcome::Committed)
    }

    fn roll_back(&self, work: impl FnOnce(&mut WriteTransaction<'_>) -> Result<()>) -> Result<()> {
        let mut writer = WriteTransaction(self.0.rw_txn());
        work(&mut writer)?;
        writer.0.abort();
        Ok(())
    }

    /// Does nothing: each commit has written its pages to the file.
    fn flush(&self) -> Result<()> {
        Ok(())
    }
}

/// A read transaction.
pub struct ReadTransaction<'r>(&'r RTxn<'r, 'r>);

impl Reader for ReadTransaction<'_> {
    fn get<T>(&mut self, key: &[u8], look: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        Ok(self.0.get(key)?.map(look))
    }

    fn scan(&mut self, direction: Direction, mut visit: impl FnMut(&[u8], &[u8])) -> Result<()> {
        if direction == Direction::Back {
            return Err(Unsupported::because("has no descending scans").into());
        }
        self.0.in_order_iter().for_each(|(key, value)| visit(key, value));
        Ok(())
    }

    fn scan_from(&mut self, start: &[u8], limit: usize, mut visit: impl FnMut(&[u8], &[u8])) -> Result<()> {
        let from = (std::ops::Bound::Included(start), std::ops::Bound::Unbounded);
        self.0.in_order_range_iter::<(_, std::ops::Bound<&[u8]>)>(&from).take(limit).for_each(|(k, v)| visit(k, v));
        Ok(())
    }
}

/// A write transaction.
pub struct WriteTransaction<'w>(RWTxn<'w, 'w>);

impl Writer for WriteTransaction<'_> {
    fn get<T>(&mut self, key: &[u8], look: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        Ok(self.0.get(key)?.map(look))
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        // byodb has separate calls for existing and new keys.
        if self.0.get(key)?.is_some() {
            self.0.update(key, value)?
        } else {
            self.0.insert(key, value)?
        }
        Ok(())
    }

    fn delete_range(&mut self, _: &[u8], _: &[u8]) -> Result<()> {
        Err(Unsupported::because("has no range deletes").into())
    }
}
