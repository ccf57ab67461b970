use std::{ops::ControlFlow, path::Path, time::Duration};

use slate_bench_harness::{About, Result};
use slate_store::{
    Bounds, Cursor as _, Edge, Error, Keyspace, PointReader, Snapshot, Store, Transaction, TransactionExt as _, View,
};

use super::Backend;
use crate::{Direction, Durability, Feature, Outcome, Reader, Subject, Writer};

const KEYSPACE: Keyspace = Keyspace(1);

/// How long beginning a transaction may wait. Local stores do not wait.
const WAIT: Duration = Duration::from_secs(60);

/// A Slate store.
pub struct SlateStore<B: Backend>(B::Store);

impl<B: Backend> SlateStore<B> {
    fn begin(&self) -> Result<<B::Store as Store>::Transaction> {
        Ok(self.0.begin(WAIT)?)
    }
}

impl<B: Backend> Subject for SlateStore<B> {
    type Reader<'r> = SnapshotReader<<B::Store as Store>::Snapshot>;
    type Writer<'w> = TransactionWriter<<B::Store as Store>::Transaction>;

    fn about() -> About {
        let settings = "default settings; commits deferred unless a row says otherwise".into();
        About { name: B::NAME.into(), version: env!("CARGO_PKG_VERSION").into(), settings }
    }

    fn lacks() -> &'static [Feature] {
        B::LACKS
    }

    fn open(folder: &Path) -> Result<Self> {
        Ok(Self(B::open(folder)?))
    }

    fn read<T>(&self, work: impl FnOnce(&mut Self::Reader<'_>) -> Result<T>) -> Result<T> {
        work(&mut SnapshotReader { snapshot: self.0.snapshot()?, reader: None })
    }

    fn write(
        &self,
        durability: Durability,
        mut work: impl FnMut(&mut Self::Writer<'_>) -> Result<()>,
    ) -> Result<Outcome> {
        let mut writer = TransactionWriter(self.begin()?);
        work(&mut writer)?;
        let durability = match durability {
            Durability::Deferred => slate_store::Durability::Deferred,
            Durability::Sync => slate_store::Durability::Sync,
        };
        match writer.0.commit(durability) {
            Ok(_) => Ok(Outcome::Committed),
            Err(Error::Conflict(_)) => Ok(Outcome::Conflict),
            Err(error) => Err(error.into()),
        }
    }

    fn roll_back(&self, work: impl FnOnce(&mut Self::Writer<'_>) -> Result<()>) -> Result<()> {
        work(&mut TransactionWriter(self.begin()?))
    }

    fn flush(&self) -> Result<()> {
        Ok(self.0.flush()?)
    }
}

/// A snapshot, with its point reader after the first read.
pub struct SnapshotReader<S: Snapshot> {
    snapshot: S,
    reader: Option<S::PointReader>,
}

impl<S: Snapshot> SnapshotReader<S> {
    fn reader(&mut self) -> Result<&mut S::PointReader> {
        match &mut self.reader {
            Some(reader) => Ok(reader),
            none => Ok(none.insert(self.snapshot.point_reader()?)),
        }
    }
}

impl<S: Snapshot> Reader for SnapshotReader<S> {
    fn get<T>(&mut self, key: &[u8], look: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        let reader = self.reader()?;
        reader.load(&[(KEYSPACE, key)])?;
        Ok(reader.loaded(0).map(look))
    }

    fn get_many(&mut self, keys: &[&[u8]], mut look: impl FnMut(usize, &[u8])) -> Result<()> {
        let reader = self.reader()?;
        reader.load(&keys.iter().map(|key| (KEYSPACE, *key)).collect::<Vec<_>>())?;
        for place in 0..keys.len() {
            if let Some(value) = reader.loaded(place) {
                look(place, value);
            }
        }
        Ok(())
    }

    fn scan(&mut self, direction: Direction, mut visit: impl FnMut(&[u8], &[u8])) -> Result<()> {
        let mut cursor = self.snapshot.cursor(KEYSPACE, Bounds::ALL)?;
        let edge = match direction {
            Direction::Forward => Edge::First,
            Direction::Back => Edge::Last,
        };
        let mut more = cursor.seek(edge)?;
        while more {
            if let Some((key, value)) = cursor.current() {
                visit(key, value);
            }
            more = match direction {
                Direction::Forward => cursor.step_forward()?,
                Direction::Back => cursor.step_back()?,
            };
        }
        Ok(())
    }

    fn scan_from(&mut self, start: &[u8], limit: usize, mut visit: impl FnMut(&[u8], &[u8])) -> Result<()> {
        let mut cursor = self.snapshot.cursor(KEYSPACE, Bounds { start: Some(start), end: None })?;
        let (mut more, mut left) = (cursor.seek(Edge::First)?, limit);
        while more && left > 0 {
            if let Some((key, value)) = cursor.current() {
                visit(key, value);
            }
            left -= 1;
            more = left > 0 && cursor.step_forward()?;
        }
        Ok(())
    }

    fn count(&mut self, start: &[u8], end: &[u8], _: usize) -> Result<u64> {
        let within = Bounds { start: Some(start), end: Some(end) };
        self.snapshot.count(KEYSPACE, within, |_| true)?.ok_or_else(|| "the count was interrupted".into())
    }
}

/// An open transaction.
pub struct TransactionWriter<T>(T);

impl<T: Transaction> Writer for TransactionWriter<T> {
    fn get<R>(&mut self, key: &[u8], look: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        Ok(self.0.view().get(KEYSPACE, key, look)?)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        Ok(self.0.put(KEYSPACE, key, value)?)
    }

    fn put_sorted(&mut self, entries: &[(&[u8], &[u8])]) -> Result<()> {
        let writes: Vec<_> = entries.iter().map(|(key, value)| (*key, Some(*value))).collect();
        Ok(self.0.write(KEYSPACE, &writes)?)
    }

    fn delete_range(&mut self, start: &[u8], end: &[u8]) -> Result<()> {
        let mut keys: Vec<Vec<u8>> = Vec::new();
        self.0.view().scan(KEYSPACE, Bounds { start: Some(start), end: Some(end) }, |key, _| -> ControlFlow<()> {
            keys.push(key.into());
            ControlFlow::Continue(())
        })?;
        Ok(self.0.write(KEYSPACE, &keys.iter().map(|key| (&key[..], None)).collect::<Vec<_>>())?)
    }
}
