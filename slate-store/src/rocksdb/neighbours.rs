use super::{
    RocksSnapshot,
    iterate::{Iterate, Limits},
};
use crate::{Bounds, Edge, Keyspace, Result};

/// Most steps to the next key; more cost about as much as a lookup.
const NEAR: usize = 4;

/// Most deleted keys or old versions that a walk passes. A lookup notices at once that its key is deleted; a walk
/// passes all of them.
const DELETED: u64 = 32;

/// From this size on, a value is read in place instead of copied.
const LARGE: usize = 4 << 10;

/// Reads ascending keys that are close together by stepping from one to the next. A step costs a fifth of a lookup,
/// which searches each of RocksDB's buffers and files.
pub(super) struct Neighbours<'r> {
    limits: Limits,
    iterate: Iterate<'r>,
    /// The values that were read last, end to end.
    bytes: Vec<u8>,
    /// Start and end of each key's value.
    places: Vec<Option<(usize, usize)>>,
}

/// Whether the keys that were read are close together.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Distance {
    Near,
    Far,
}

impl<'r> Neighbours<'r> {
    /// Creates a reader for `keys` if the first two are close together.
    pub(super) fn of(snapshot: &'r RocksSnapshot, keyspace: Keyspace, keys: &[&[u8]]) -> Result<Option<Self>> {
        let [first, second, ..] = keys else { return Ok(None) };
        let (mut limits, mut options) = Limits::new(keyspace, Bounds::ALL);
        options.set_max_skippable_internal_keys(DELETED);
        let mut iterate = snapshot.iterate(options);
        let found = iterate.seek(&mut limits, Edge::AtOrAfter(first));
        let mut neighbours = Self { limits, iterate, bytes: Vec::new(), places: Vec::new() };
        match found.and_then(|_| neighbours.step_to(second)) {
            Ok(is_near) => Ok(is_near.then_some(neighbours)),
            Err(_) if neighbours.iterate.gave_up() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads ascending keys, and returns how close together they are. Returns `None` without reading if many keys among
    /// them are deleted.
    pub(super) fn load(&mut self, keys: &[&[u8]]) -> Result<Option<Distance>> {
        let read = self.read(keys);
        if read.is_err() {
            self.clear();
        }
        match read {
            Ok(distance) => Ok(Some(distance)),
            Err(_) if self.iterate.gave_up() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Drops the values that were read last.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.places.clear();
    }

    fn read(&mut self, keys: &[&[u8]]) -> Result<Distance> {
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
        let is_near = seeks * NEAR <= keys.len() && self.bytes.len() <= LARGE * keys.len();
        Ok(if is_near { Distance::Near } else { Distance::Far })
    }

    /// Returns the value of the key with this index.
    pub(super) fn loaded(&self, index: usize) -> Option<&[u8]> {
        let (start, end) = (*self.places.get(index)?)?;
        self.bytes.get(start..end)
    }

    /// Steps forward to the key or the position where it would be, if that is near.
    fn step_to(&mut self, key: &[u8]) -> Result<bool> {
        let is_there = |iterate: &Iterate<'_>| iterate.current().is_none_or(|(found, _)| found >= key);
        for _ in 0..NEAR {
            if is_there(&self.iterate) {
                return Ok(true);
            }
            self.iterate.step_forward()?;
        }
        Ok(is_there(&self.iterate))
    }
}
