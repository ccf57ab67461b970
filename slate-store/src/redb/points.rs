use std::{cmp::Ordering, ops::Bound};

use ::redb::{AccessGuard, Range, ReadableTable};

use super::{RedbSnapshot, RedbTransaction, error, table::Bytes};
use crate::{Keyspace, PointReader, Result};

/// The values of the last load.
#[derive(Default)]
struct Loaded<'t> {
    values: Vec<Option<AccessGuard<'t, Bytes>>>,
    locality: Locality,
}

/// How close together the loaded keys were in their table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Locality {
    /// Close, or not known yet.
    #[default]
    Near,
    Far,
}

/// Fewer keys are looked up one by one: finding out how close they are costs as much as a few lookups.
const MIN_WALKED: usize = 8;

/// The most entries that a walk steps over per key. A step costs at most a sixth of a lookup.
const STEPS_PER_KEY: usize = 4;

/// The most entries that a walk steps over before its first key.
const FIRST_STEPS: usize = 8;

impl<'t> Loaded<'t> {
    /// Loads keys of one table. `range` walks its entries from a key on, `get` looks up one.
    fn load(
        &mut self,
        keys: &[(Keyspace, &[u8])],
        range: impl FnOnce(&[u8]) -> Result<Range<'t, Bytes, Bytes>>,
        get: impl Fn(&[u8]) -> Result<Option<AccessGuard<'t, Bytes>>>,
    ) -> Result<()> {
        let start = self.values.len();
        if self.locality == Locality::Near
            && keys.len() >= MIN_WALKED
            && let Some((_, first)) = keys.first()
        {
            self.walk(keys, range(first)?)?;
            if self.values.len() - start < keys.len() {
                self.locality = Locality::Far;
            }
        }
        for (_, key) in keys.iter().skip(self.values.len() - start) {
            let value = get(key)?;
            self.values.push(value);
        }
        Ok(())
    }

    /// Steps from entry to entry as long as the next key is near: this costs less than a lookup for each.
    fn walk(&mut self, keys: &[(Keyspace, &[u8])], mut entries: Range<'t, Bytes, Bytes>) -> Result<()> {
        let mut next = || entries.next().transpose().map_err(error::storage);
        let mut entry = next()?;
        let mut steps = FIRST_STEPS;
        let mut before: Option<&[u8]> = None;
        for (_, key) in keys {
            if before.is_some_and(|before| *key <= before) {
                break;
            }
            before = Some(key);
            steps += STEPS_PER_KEY;
            // Without an entry, the last one was taken: it is below every key that is left.
            while entry.as_ref().is_none_or(|(found, _)| found.value() < *key) {
                if steps == 0 {
                    return Ok(());
                }
                steps -= 1;
                entry = next()?;
                if entry.is_none() {
                    break;
                }
            }
            let found = entry.take_if(|(found, _)| found.value().cmp(key) == Ordering::Equal);
            self.values.push(found.map(|(_, value)| value));
        }
        Ok(())
    }

    fn missing(&mut self, count: usize) {
        self.values.extend((0..count).map(|_| None));
    }

    fn value(&self, index: usize) -> Option<&[u8]> {
        self.values.get(index)?.as_ref().map(AccessGuard::value)
    }
}

/// Loads each run of keys of one keyspace; on an error nothing stays loaded.
fn load_runs<'t>(
    loaded: &mut Loaded<'t>,
    keys: &[(Keyspace, &[u8])],
    mut load: impl FnMut(&mut Loaded<'t>, Keyspace, &[(Keyspace, &[u8])]) -> Result<()>,
) -> Result<()> {
    loaded.values.clear();
    loaded.values.reserve(keys.len());
    for run in keys.chunk_by(|(a, _), (b, _)| a == b) {
        let Some((keyspace, _)) = run.first() else { continue };
        if let Err(error) = load(loaded, *keyspace, run) {
            loaded.values.clear();
            return Err(error);
        }
    }
    Ok(())
}

/// A reader of single keys of a [`RedbSnapshot`].
pub struct RedbPointReader {
    // The guards do not keep the transaction alive: they must be dropped before the snapshot.
    loaded: Loaded<'static>,
    snapshot: RedbSnapshot,
}

impl RedbPointReader {
    pub(super) fn open(snapshot: RedbSnapshot) -> Self {
        Self { loaded: Loaded::default(), snapshot }
    }
}

fn load_from_snapshot<'t>(
    snapshot: &RedbSnapshot,
    loaded: &mut Loaded<'t>,
    keyspace: Keyspace,
    keys: &[(Keyspace, &[u8])],
) -> Result<()> {
    let Some(table) = snapshot.table(keyspace)? else {
        loaded.missing(keys.len());
        return Ok(());
    };
    loaded.load(
        keys,
        |first| table.range::<&[u8]>((Bound::Included(first), Bound::Unbounded)).map_err(error::storage),
        |key| table.get(key).map_err(error::storage),
    )
}

impl PointReader for RedbPointReader {
    fn load(&mut self, keys: &[(Keyspace, &[u8])]) -> Result<()> {
        let Self { loaded, snapshot } = self;
        load_runs(loaded, keys, |loaded, keyspace, keys| load_from_snapshot(snapshot, loaded, keyspace, keys))
    }

    fn loaded(&self, index: usize) -> Option<&[u8]> {
        self.loaded.value(index)
    }
}

/// A reader of single keys of a [`RedbTransactionView`](super::RedbTransactionView).
pub struct RedbTransactionPointReader<'t> {
    loaded: Loaded<'t>,
    transaction: &'t RedbTransaction,
}

impl<'t> RedbTransactionPointReader<'t> {
    pub(super) fn open(transaction: &'t RedbTransaction) -> Self {
        Self { loaded: Loaded::default(), transaction }
    }
}

impl PointReader for RedbTransactionPointReader<'_> {
    fn load(&mut self, keys: &[(Keyspace, &[u8])]) -> Result<()> {
        let Self { loaded, transaction } = self;
        load_runs(loaded, keys, |loaded, keyspace, keys| match transaction.written(keyspace) {
            Some(table) => loaded.load(
                keys,
                |first| table.range::<&[u8]>((Bound::Included(first), Bound::Unbounded)).map_err(error::storage),
                |key| table.get(key).map_err(error::storage),
            ),
            None => load_from_snapshot(transaction.base()?, loaded, keyspace, keys),
        })
    }

    fn loaded(&self, index: usize) -> Option<&[u8]> {
        self.loaded.value(index)
    }
}
