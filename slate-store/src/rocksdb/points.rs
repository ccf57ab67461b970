use ::rocksdb::{DBPinnableSlice, ReadOptions};
use self_cell::self_cell;

use super::{
    RocksSnapshot,
    handle::Sorted,
    key::{self, Prefixed},
    neighbours::{Distance, Neighbours},
    written::Written,
};
use crate::{
    Keyspace, Points, Result,
    row_cache::{Lookup, Missed, Row, RowReader},
};

/// What was read last.
#[derive(Default)]
struct Read<'r> {
    last: Option<Value<'r>>,
    /// None where the neighbours have them.
    loaded: Vec<Option<Value<'r>>>,
    neighbours: Option<Neighbours<'r>>,
    /// `None` as long as only few keys were read at once.
    distance: Option<Distance>,
}

enum Value<'r> {
    /// Where it lies, in RocksDB's cache or its buffers.
    Read(DBPinnableSlice<'r>),
    Cached(Row),
}

impl Value<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Read(slice) => slice,
            Self::Cached(row) => row.value(),
        }
    }
}

/// To find out whether keys lie close together costs as much as to look up a few.
const MANY: usize = 8;

impl<'r> Read<'r> {
    /// What reads these keys if they lie close together. Once they do not, no more is tried.
    fn neighbours(
        &mut self,
        snapshot: &'r RocksSnapshot,
        keyspace: Keyspace,
        keys: &[&[u8]],
    ) -> Result<Option<&mut Neighbours<'r>>> {
        if keys.len() < MANY || self.distance == Some(Distance::Far) || Sorted::of(keys) == Sorted::Unknown {
            return Ok(None);
        }
        if self.distance.is_none() {
            self.neighbours = Neighbours::of(snapshot, keyspace, keys)?;
            self.distance = Some(self.neighbours.as_ref().map_or(Distance::Far, |_| Distance::Near));
        }
        Ok(self.neighbours.as_mut())
    }

    /// Finds what is cached, and gives back the other keys.
    fn find<'k>(&mut self, rows: &mut RowReader, keys: &[&'k [u8]]) -> Vec<Missed<'k>> {
        let mut missing = Vec::new();
        self.loaded.clear();
        for key in keys {
            self.loaded.push(match rows.find(key) {
                Lookup::Found(row) => Some(Value::Cached(row)),
                Lookup::Missed(missed) => {
                    missing.push(missed);
                    None
                }
            });
        }
        missing
    }

    /// Reads keys of which none is cached, if they lie close together; whether they did.
    fn go_along(
        &mut self,
        from: &'r RocksSnapshot,
        by: &By,
        rows: &RowReader,
        keys: &[&[u8]],
        missing: &[Missed<'_>],
    ) -> Result<bool> {
        let Some(neighbours) = self.neighbours(from, by.keyspace, keys)? else { return Ok(false) };
        let distance = neighbours.load(keys)?;
        if distance.is_some() {
            let loaded = |at| neighbours.loaded(at);
            let found = missing.iter().enumerate().filter_map(|(at, missed)| Some((missed, loaded(at)?)));
            found.for_each(|(missed, value)| rows.keep(missed, value));
            self.loaded.clear();
        }
        self.distance = Some(distance.unwrap_or(Distance::Far));
        Ok(distance.is_some())
    }

    /// Reads keys that are not cached, in one round.
    fn read(&mut self, from: &'r RocksSnapshot, by: &By, rows: &RowReader, missing: &[Missed<'_>]) -> Result<()> {
        let keys: Vec<_> = missing.iter().map(|missed| missed.key).collect();
        let all = by.whole.run_together(&keys);
        let values = from.multi_get(key::apart(&all, &keys), Sorted::of(&keys), &by.options)?;
        let places = self.loaded.iter_mut().filter(|value| value.is_none());
        for ((place, missed), value) in places.zip(missing).zip(values) {
            if let Some(value) = &value {
                rows.keep(missed, value);
            }
            *place = value.map(Value::Read);
        }
        Ok(())
    }

    fn load(&mut self, from: &'r RocksSnapshot, by: &By, rows: &mut RowReader, keys: &[&[u8]]) -> Result<()> {
        let missing = self.find(rows, keys);
        if missing.is_empty() || (missing.len() == keys.len() && self.go_along(from, by, rows, keys, &missing)?) {
            return Ok(());
        }
        self.read(from, by, rows, &missing)
    }

    fn loaded(&self, index: usize) -> Option<&[u8]> {
        match self.loaded.get(index) {
            Some(value) => value.as_ref().map(Value::bytes),
            None => self.neighbours.as_ref()?.loaded(index),
        }
    }

    /// Forgets what was loaded.
    fn clear(&mut self) {
        self.loaded.clear();
        if let Some(neighbours) = &mut self.neighbours {
            neighbours.clear();
        }
    }
}

self_cell!(
    struct Cell {
        owner: RocksSnapshot,
        #[covariant]
        dependent: Read,
    }
);

/// A reader of single keys of a [`RocksSnapshot`].
pub struct RocksPoints {
    by: By,
    rows: RowReader,
    cell: Cell,
}

/// What it takes to read a keyspace.
struct By {
    keyspace: Keyspace,
    whole: Prefixed,
    /// Those of the snapshot: making them costs as much as a read.
    options: ReadOptions,
}

impl RocksPoints {
    pub(super) fn open(snapshot: RocksSnapshot, keyspace: Keyspace, rows: RowReader) -> Self {
        let options = snapshot.options();
        let cell = Cell::new(snapshot, |_| Read::default());
        Self { by: By { keyspace, whole: Prefixed::new(keyspace), options }, rows, cell }
    }
}

impl Points for RocksPoints {
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        let (by, rows) = (&mut self.by, &mut self.rows);
        self.cell.with_dependent_mut(|snapshot, read| {
            read.last = None;
            read.last = match rows.find(key) {
                Lookup::Found(row) => Some(Value::Cached(row)),
                Lookup::Missed(missed) => snapshot.read(by.whole.with(key), &by.options)?.map(|value| {
                    rows.keep(&missed, &value);
                    Value::Read(value)
                }),
            };
            Ok(read.last.as_ref().map(Value::bytes))
        })
    }

    fn load(&mut self, keys: &[&[u8]]) -> Result<()> {
        let (by, rows) = (&self.by, &mut self.rows);
        self.cell.with_dependent_mut(|snapshot, read| {
            // Neighbours lend what they read last where nothing else is loaded.
            read.clear();
            let all = read.load(snapshot, by, rows, keys);
            if all.is_err() {
                read.clear();
            }
            all
        })
    }

    fn loaded(&self, index: usize) -> Option<&[u8]> {
        self.cell.borrow_dependent().loaded(index)
    }
}

/// A reader of single keys of a [`RocksTransactionView`](super::RocksTransactionView).
pub struct RocksTransactionPoints<'t> {
    base: RocksPoints,
    written: Option<&'t Written>,
    /// Of the keys loaded last, those that the transaction wrote, by their places; ascending.
    own: Vec<(usize, Option<&'t [u8]>)>,
}

impl<'t> RocksTransactionPoints<'t> {
    pub(super) fn new(base: RocksPoints, written: Option<&'t Written>) -> Self {
        Self { base, written, own: Vec::new() }
    }
}

impl Points for RocksTransactionPoints<'_> {
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        match self.written.and_then(|written| written.get(key)) {
            Some(own) => Ok(own),
            None => self.base.get(key),
        }
    }

    /// In one round, those that the transaction wrote too: they are few as a rule.
    fn load(&mut self, keys: &[&[u8]]) -> Result<()> {
        self.own.clear();
        self.base.load(keys)?;
        if let Some(written) = self.written {
            let own = |(place, key): (usize, &&[u8])| Some((place, written.get(key)?));
            self.own.extend(keys.iter().enumerate().filter_map(own));
        }
        Ok(())
    }

    fn loaded(&self, index: usize) -> Option<&[u8]> {
        match self.own.binary_search_by_key(&index, |(place, _)| *place) {
            Ok(at) => self.own.get(at).and_then(|(_, value)| *value),
            Err(_) => self.base.loaded(index),
        }
    }
}
