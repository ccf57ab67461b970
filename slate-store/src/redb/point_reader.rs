use std::{hint::black_box, ops::Bound};

use ::redb::{AccessGuard, Range};

use super::{RedbSnapshot, error, table::Bytes};
use crate::{
    Keyspace, PointReader, Result,
    key_locality::{KeyLocality, STEPS_PER_KEY, SteppedCursor},
};

/// The values of the last load.
#[derive(Default)]
struct Loaded<'t> {
    values: Vec<Option<AccessGuard<'t, Bytes>>>,
    /// How close together the loaded keys were in their table.
    locality: KeyLocality,
}

/// Steps that a walk may take beyond [`STEPS_PER_KEY`] per key.
const FIRST_STEPS: usize = 8;

/// A walk over the entries of a table.
struct Entries<'t> {
    range: Range<'t, Bytes, Bytes>,
    /// The current entry. Its value is `None` after it was moved out.
    entry: Option<(AccessGuard<'t, Bytes>, Option<AccessGuard<'t, Bytes>>)>,
}

impl SteppedCursor for Entries<'_> {
    fn key(&self) -> Option<&[u8]> {
        self.entry.as_ref().map(|(key, _)| key.value())
    }

    fn step(&mut self) -> Result<()> {
        let entry = self.range.next().transpose().map_err(error::storage)?;
        self.entry = entry.map(|(key, value)| (key, Some(value)));
        Ok(())
    }
}

impl<'t> Loaded<'t> {
    /// Loads keys of one table. `range` returns the entries from a key on; `get` looks up one key.
    fn load(
        &mut self,
        keys: &[(Keyspace, &[u8])],
        range: impl FnOnce(&[u8]) -> Result<Range<'t, Bytes, Bytes>>,
        get: impl Fn(&[u8]) -> Result<Option<AccessGuard<'t, Bytes>>>,
    ) -> Result<()> {
        let start = self.values.len();
        if self.locality.allows_stepping(keys)
            && let Some((_, first)) = keys.first()
        {
            self.walk(keys, range(first)?)?;
            if self.values.len() - start < keys.len() {
                self.locality = KeyLocality::Far;
            }
        }
        for (_, key) in keys.iter().skip(self.values.len() - start) {
            let value = get(key)?;
            self.values.push(value);
        }
        Ok(())
    }

    /// Reads ascending keys by stepping, as long as the next key is near.
    fn walk(&mut self, keys: &[(Keyspace, &[u8])], range: Range<'t, Bytes, Bytes>) -> Result<()> {
        let mut entries = Entries { range, entry: None };
        entries.step()?;
        let mut steps = FIRST_STEPS;
        let mut previous: Option<&[u8]> = None;
        for (_, key) in keys {
            steps += STEPS_PER_KEY;
            if previous.is_some_and(|previous| *key <= previous) || !entries.step_to(key, &mut steps)? {
                break;
            }
            previous = Some(key);
            let found = entries.entry.as_mut().filter(|(found, _)| found.value() == *key);
            self.values.push(found.and_then(|(_, value)| value.take()));
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

/// Loads keys of one keyspace.
fn load_run(
    snapshot: &RedbSnapshot,
    loaded: &mut Loaded<'static>,
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
        loaded.values.clear();
        loaded.values.reserve(keys.len());
        for run in keys.chunk_by(|(a, _), (b, _)| a == b) {
            let Some((keyspace, first)) = run.first() else { continue };
            let load = || {
                let before = loaded.values.len();
                load_run(snapshot, loaded, *keyspace, run)?;
                // Reads each value now: if its bytes are not within its page, redb panics here, where the panic is caught, and not later.
                for value in loaded.values.iter().skip(before).flatten() {
                    black_box(value.value());
                }
                Ok(())
            };
            if let Err(error) = snapshot.guarded(load) {
                loaded.values.clear();
                return Err(error.near(*keyspace, first));
            }
        }
        Ok(())
    }

    fn loaded(&self, index: usize) -> Option<&[u8]> {
        self.loaded.value(index)
    }
}
