use super::{
    RocksSnapshot,
    iterate::{Iterate, Limits},
};
use crate::{
    Bounds, Edge, Keyspace, Result,
    key_locality::{KeyLocality, STEPS_PER_KEY, SteppedCursor},
};

/// Maximum number of deleted keys or old versions that one step skips. A lookup of a deleted key finds it directly, but a step skips each one.
const MAX_DELETED: u64 = 32;

/// Maximum average size, in bytes, of values that are copied. After a load of larger ones, further loads read in place.
const MAX_COPIED: usize = 4 << 10;

/// Reads ascending keys that are close together by stepping from one to the next. A step costs less than a lookup,
/// which searches each of RocksDB's buffers and files.
pub(super) struct SteppingReader<'r> {
    limits: Limits,
    iterate: Iterate<'r>,
    /// The values that were read last, end to end.
    bytes: Vec<u8>,
    /// Start and end of each key's value in `bytes`; `None` for a missing key.
    places: Vec<Option<(usize, usize)>>,
}

impl SteppedCursor for Iterate<'_> {
    fn key(&self) -> Option<&[u8]> {
        self.current().map(|(key, _)| key)
    }

    fn step(&mut self) -> Result<()> {
        self.step_forward().map(drop)
    }
}

impl<'r> SteppingReader<'r> {
    /// Creates a reader for `keys` if the first two are close together.
    pub(super) fn of(snapshot: &'r RocksSnapshot, keyspace: Keyspace, keys: &[&[u8]]) -> Result<Option<Self>> {
        let [first, second, ..] = keys else { return Ok(None) };
        let (mut limits, mut options) = Limits::new(keyspace, Bounds::ALL);
        options.set_max_skippable_internal_keys(MAX_DELETED);
        let mut iterate = snapshot.iterate(options);
        let found = iterate.seek(&mut limits, Edge::AtOrAfter(first));
        let mut reader = Self { limits, iterate, bytes: Vec::new(), places: Vec::new() };
        match found.and_then(|_| reader.step_to(second)) {
            Ok(is_near) => Ok(is_near.then_some(reader)),
            Err(_) if reader.iterate.gave_up() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads ascending keys, and returns how close together they are. Returns `None` and reads nothing if too many deleted keys are among them.
    pub(super) fn load(&mut self, keys: &[&[u8]]) -> Result<Option<KeyLocality>> {
        let read = self.read(keys);
        if read.is_err() {
            self.clear();
        }
        match read {
            Ok(locality) => Ok(Some(locality)),
            Err(_) if self.iterate.gave_up() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Drops the values that were read last.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.places.clear();
    }

    fn read(&mut self, keys: &[&[u8]]) -> Result<KeyLocality> {
        self.clear();
        let mut seeks = 0;
        for (at, key) in keys.iter().enumerate() {
            if at == 0 || !self.step_to(key)? {
                self.iterate.seek(&mut self.limits, Edge::AtOrAfter(key))?;
                seeks += 1;
            }
            let value = self.iterate.current().and_then(|(found, value)| (found == *key).then_some(value));
            let start = self.bytes.len();
            self.bytes.extend_from_slice(value.unwrap_or_default());
            self.places.push(value.map(|_| (start, self.bytes.len())));
        }
        let is_near = seeks * STEPS_PER_KEY <= keys.len() && self.bytes.len() <= MAX_COPIED * keys.len();
        Ok(if is_near { KeyLocality::Near } else { KeyLocality::Far })
    }

    /// Returns the value of the key at this position of the last load; `None` if the key is missing.
    pub(super) fn loaded(&self, index: usize) -> Option<&[u8]> {
        let (start, end) = (*self.places.get(index)?)?;
        self.bytes.get(start..end)
    }

    /// Steps forward to the first key at or after `key`. Returns `false` if that takes too many steps.
    fn step_to(&mut self, key: &[u8]) -> Result<bool> {
        self.iterate.step_to(key, &mut { STEPS_PER_KEY })
    }
}
