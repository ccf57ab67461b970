use ::rocksdb::{DBPinnableSlice, ReadOptions};
use self_cell::self_cell;

use super::{
    RocksSnapshot,
    handle::Sorted,
    key::{self, Prefixed},
    neighbours::{Distance, Neighbours},
    writes::Written,
};
use crate::{
    Keyspace, Points, Result,
    row_cache::{Lookup, Row, RowReader},
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
        sorted: Sorted,
    ) -> Result<Option<&mut Neighbours<'r>>> {
        if keys.len() < MANY || sorted == Sorted::Unknown {
            return Ok(None);
        }
        if self.distance.is_none() {
            self.neighbours = Neighbours::of(snapshot, keyspace, keys)?;
            self.distance = Some(self.neighbours.as_ref().map_or(Distance::Far, |_| Distance::Near));
        }
        Ok(self.neighbours.as_mut().filter(|_| self.distance == Some(Distance::Near)))
    }

    /// Finds what is cached, and reads the rest in one round.
    fn find(
        &mut self,
        snapshot: &'r RocksSnapshot,
        rows: &mut RowReader,
        keys: &[&[u8]],
        sorted: Sorted,
        (whole, options): (&Prefixed, &ReadOptions),
    ) -> Result<()> {
        let mut missing = Vec::new();
        let mut loaded = Vec::with_capacity(keys.len());
        for key in keys {
            loaded.push(match rows.find(key) {
                Lookup::Found(row) => Some(Value::Cached(row)),
                Lookup::Missed(missed) => {
                    missing.push(missed);
                    None
                }
            });
        }
        if !missing.is_empty() {
            let keys: Vec<_> = missing.iter().map(|missed| missed.key).collect();
            let all = whole.run_together(&keys);
            let values = snapshot.multi_get(key::apart(&all, &keys), sorted, options)?;
            let places = loaded.iter_mut().filter(|value| value.is_none());
            for ((place, missed), value) in places.zip(missing).zip(values) {
                if let Some(value) = &value {
                    rows.keep(&missed, value);
                }
                *place = value.map(Value::Read);
            }
        }
        self.loaded = loaded;
        Ok(())
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
    keyspace: Keyspace,
    key: Prefixed,
    /// Those of the snapshot: making them costs as much as a read.
    options: ReadOptions,
    rows: RowReader,
    cell: Cell,
}

impl RocksPoints {
    pub(super) fn open(snapshot: RocksSnapshot, keyspace: Keyspace) -> Self {
        let (options, rows) = (snapshot.options(), snapshot.rows(keyspace));
        let cell = Cell::new(snapshot, |_| Read::default());
        Self { keyspace, key: Prefixed::new(keyspace), options, rows, cell }
    }
}

impl Points for RocksPoints {
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        let (whole, options, rows) = (&mut self.key, &self.options, &mut self.rows);
        self.cell.with_dependent_mut(|snapshot, read| {
            read.last = None;
            read.last = match rows.find(key) {
                Lookup::Found(row) => Some(Value::Cached(row)),
                Lookup::Missed(missed) => snapshot.read(whole.with(key), options)?.map(|value| {
                    rows.keep(&missed, &value);
                    Value::Read(value)
                }),
            };
            Ok(read.last.as_ref().map(Value::bytes))
        })
    }

    fn load(&mut self, keys: &[&[u8]]) -> Result<()> {
        let (key, options, rows, sorted) = (&self.key, &self.options, &mut self.rows, Sorted::of(keys));
        self.cell.with_dependent_mut(|snapshot, read| {
            read.loaded.clear();
            if let Some(neighbours) = read.neighbours(snapshot, self.keyspace, keys, sorted)? {
                let distance = neighbours.load(keys)?;
                read.distance = Some(distance.unwrap_or(Distance::Far));
                if distance.is_some() {
                    return Ok(());
                }
            }
            if let Some(neighbours) = &mut read.neighbours {
                neighbours.clear();
            }
            read.find(snapshot, rows, keys, sorted, (key, options))
        })
    }

    fn loaded(&self, index: usize) -> Option<&[u8]> {
        let read = self.cell.borrow_dependent();
        match read.loaded.get(index) {
            Some(value) => value.as_ref().map(Value::bytes),
            None => read.neighbours.as_ref()?.loaded(index),
        }
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
            Some(own) => Ok(own.as_deref()),
            None => self.base.get(key),
        }
    }

    /// In one round, those that the transaction wrote too: they are few as a rule.
    fn load(&mut self, keys: &[&[u8]]) -> Result<()> {
        self.own.clear();
        self.base.load(keys)?;
        if let Some(written) = self.written {
            let own = |(place, key): (usize, &&[u8])| Some((place, written.get(*key)?.as_deref()));
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
