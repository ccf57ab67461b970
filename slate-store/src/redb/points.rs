use std::{cmp::Ordering, ops::Bound};

use ::redb::{AccessGuard, ReadableTable, Table};
use self_cell::self_cell;

use super::{RedbSnapshot, error, snapshot::ReadTable, table::Bytes};
use crate::{
    Points, Result,
    row_cache::{Lookup, Row, RowReader},
};

/// What was read last.
#[derive(Default)]
struct Values<'t> {
    last: Option<Value<'t>>,
    loaded: Vec<Option<Value<'t>>>,
    lie: Lie,
    /// `None` where the table has writes of its own transaction.
    rows: Option<RowReader>,
}

enum Value<'t> {
    Read(AccessGuard<'t, Bytes>),
    Cached(Row),
}

impl Value<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Read(guard) => guard.value(),
            Self::Cached(row) => row.value(),
        }
    }
}

/// How the keys that are loaded lie in the table, as the last load found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Lie {
    /// Near each other, or nothing is known yet.
    #[default]
    Near,
    Apart,
}

/// Fewer keys are looked up one by one.
const LEAST_WALKED: usize = 8;

/// How many entries a load walks over, for each key that it looks for, before it looks the keys up one by one: a step costs
/// a sixth of a descent, or less.
const STEPS_PER_KEY: usize = 4;

/// What a walk may cost before it has found anything.
const FIRST_STEPS: usize = 8;

impl<'t> Values<'t> {
    fn cached_by(rows: RowReader) -> Self {
        Self { rows: Some(rows), ..Self::default() }
    }

    fn get(&mut self, table: &'t impl ReadableTable<Bytes, Bytes>, key: &[u8]) -> Result<Option<&[u8]>> {
        self.last = None;
        self.last = self.find(table, key)?;
        Ok(self.last.as_ref().map(Value::bytes))
    }

    fn find(&mut self, table: &'t impl ReadableTable<Bytes, Bytes>, key: &[u8]) -> Result<Option<Value<'t>>> {
        let Some(rows) = &mut self.rows else { return Ok(descend(table, key)?.map(Value::Read)) };
        match rows.find(key) {
            Lookup::Found(row) => Ok(Some(Value::Cached(row))),
            Lookup::Missed(missed) => {
                let Some(value) = descend(table, key)? else { return Ok(None) };
                rows.keep(&missed, value.value());
                Ok(Some(Value::Read(value)))
            }
        }
    }

    /// Reads each key; on an error nothing stays loaded.
    fn load(&mut self, table: &'t impl ReadableTable<Bytes, Bytes>, keys: &[&[u8]]) -> Result<()> {
        self.loaded.clear();
        self.loaded.reserve(keys.len());
        let all = self.read(table, keys);
        if all.is_err() {
            self.loaded.clear();
        }
        all
    }

    fn read(&mut self, table: &'t impl ReadableTable<Bytes, Bytes>, keys: &[&[u8]]) -> Result<()> {
        if self.lie == Lie::Near && keys.len() >= LEAST_WALKED {
            self.walk(table, keys)?;
            if self.loaded.len() < keys.len() {
                self.lie = Lie::Apart;
            }
        }
        for key in keys.iter().skip(self.loaded.len()) {
            let value = self.find(table, key)?;
            self.loaded.push(value);
        }
        Ok(())
    }

    /// Goes along the table from the first key, as long as the next one is near: keys that come in order and lie close to
    /// each other are found for less than a descent each.
    fn walk(&mut self, table: &'t impl ReadableTable<Bytes, Bytes>, keys: &[&[u8]]) -> Result<()> {
        let Some(first) = keys.first() else { return Ok(()) };
        let mut gap = table.lower_bound(Bound::Included(*first)).map_err(error::storage)?;
        let mut entry = gap.next().map_err(error::storage)?;
        let mut steps = FIRST_STEPS;
        let mut before: Option<&[u8]> = None;
        for key in keys {
            if before.is_some_and(|before| *key <= before) {
                break;
            }
            before = Some(key);
            steps += STEPS_PER_KEY;
            // An entry that was taken lies before every key that is left.
            while entry.as_ref().is_none_or(|(stands, _)| stands.value() < *key) {
                if steps == 0 {
                    return Ok(());
                }
                steps -= 1;
                entry = gap.next().map_err(error::storage)?;
                if entry.is_none() {
                    break;
                }
            }
            let found = entry.take_if(|(stands, _)| stands.value().cmp(key) == Ordering::Equal);
            self.loaded.push(found.map(|(_, value)| Value::Read(value)));
        }
        Ok(())
    }

    fn loaded(&self, index: usize) -> Option<&[u8]> {
        Some(self.loaded.get(index)?.as_ref()?.bytes())
    }
}

fn descend<'t>(table: &'t impl ReadableTable<Bytes, Bytes>, key: &[u8]) -> Result<Option<AccessGuard<'t, Bytes>>> {
    table.get(key).map_err(error::storage)
}

self_cell!(
    struct Cell {
        owner: ReadTable,
        #[not_covariant]
        dependent: Values,
    }
);

/// A reader of single keys of a [`RedbSnapshot`].
pub struct RedbPoints {
    // The guards that redb hands out do not keep pages alive: the cell does, and the snapshot.
    cell: Cell,
    _snapshot: RedbSnapshot,
}

impl RedbPoints {
    pub(super) fn open(snapshot: RedbSnapshot, table: ReadTable, rows: RowReader) -> Self {
        Self { cell: Cell::new(table, |_| Values::cached_by(rows)), _snapshot: snapshot }
    }
}

impl Points for RedbPoints {
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        self.cell.with_dependent_mut(|table, values| match table {
            Some(table) => values.get(&**table, key),
            None => Ok(None),
        })
    }

    fn load(&mut self, keys: &[&[u8]]) -> Result<()> {
        self.cell.with_dependent_mut(|table, values| match table {
            Some(table) => values.load(&**table, keys),
            None => Ok(()),
        })
    }

    fn loaded(&self, index: usize) -> Option<&[u8]> {
        self.cell.with_dependent(|_, values| values.loaded(index))
    }
}

/// A reader of single keys of a [`RedbTransactionView`](super::RedbTransactionView).
pub struct RedbTransactionPoints<'t>(Within<'t>);

enum Within<'t> {
    /// Of a keyspace that the transaction did not write to.
    Base(RedbPoints),
    Written {
        table: &'t Table<'t, Bytes, Bytes>,
        values: Values<'t>,
    },
}

impl<'t> RedbTransactionPoints<'t> {
    pub(super) fn base(points: RedbPoints) -> Self {
        Self(Within::Base(points))
    }

    pub(super) fn written(table: &'t Table<'t, Bytes, Bytes>) -> Self {
        Self(Within::Written { table, values: Values::default() })
    }
}

impl Points for RedbTransactionPoints<'_> {
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        match &mut self.0 {
            Within::Base(points) => points.get(key),
            Within::Written { table, values } => values.get(*table, key),
        }
    }

    fn load(&mut self, keys: &[&[u8]]) -> Result<()> {
        match &mut self.0 {
            Within::Base(points) => points.load(keys),
            Within::Written { table, values } => values.load(*table, keys),
        }
    }

    fn loaded(&self, index: usize) -> Option<&[u8]> {
        match &self.0 {
            Within::Base(points) => points.loaded(index),
            Within::Written { values, .. } => values.loaded(index),
        }
    }
}
