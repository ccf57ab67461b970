//! Whole keys: a key prefixed with the big-endian number of its keyspace, so that each keyspace is a key range.

use crate::{Bounds, Keyspace, MAX_KEY};

/// A key below all keyspaces. A commit without writes puts it, so that RocksDB gives the commit a number of its own.
pub(super) const VERSION: &[u8] = &[];

const PREFIX: usize = size_of::<u32>();

/// A reusable buffer for whole keys of one keyspace.
pub(super) struct Prefixed(Vec<u8>);

impl Prefixed {
    pub(super) fn new(keyspace: Keyspace) -> Self {
        Self(prefix(keyspace).into())
    }

    pub(super) fn with(&mut self, key: &[u8]) -> &[u8] {
        self.0.truncate(PREFIX);
        self.0.extend_from_slice(key);
        &self.0
    }

    /// Returns the lower bound of the keyspace's whole keys.
    pub(super) fn first(&mut self) -> &[u8] {
        self.with(&[])
    }
}

/// Concatenates the whole keys. [`apart`] splits them again.
pub(super) fn concatenate(keys: &[(Keyspace, &[u8])]) -> Vec<u8> {
    let mut all = Vec::with_capacity(keys.iter().map(|(_, key)| PREFIX + key.len()).sum());
    for (keyspace, key) in keys {
        all.extend_from_slice(&prefix(*keyspace));
        all.extend_from_slice(key);
    }
    all
}

/// Returns the whole keys that were [concatenated](concatenate) from `keys`.
pub(super) fn apart<'a>(mut all: &'a [u8], keys: &[(Keyspace, &[u8])]) -> impl Iterator<Item = &'a [u8]> {
    keys.iter().map(move |(_, key)| {
        let (first, rest) = all.split_at(PREFIX + key.len());
        all = rest;
        first
    })
}

pub(super) fn whole(keyspace: Keyspace, key: &[u8]) -> Vec<u8> {
    [&prefix(keyspace)[..], key].concat()
}

/// Returns a whole key without its keyspace.
#[inline]
pub(super) fn bare(whole: &[u8]) -> &[u8] {
    whole.get(PREFIX..).unwrap_or_default()
}

/// Returns the smallest whole key within the bounds.
pub(super) fn start(keyspace: Keyspace, bounds: Bounds<'_>) -> Vec<u8> {
    whole(keyspace, bounds.start.unwrap_or_default())
}

/// Returns the smallest whole key beyond the bounds; `None` if the bounds include the end of the last keyspace.
pub(super) fn end(keyspace: Keyspace, bounds: Bounds<'_>) -> Option<Vec<u8>> {
    match bounds.end {
        Some(end) => Some(whole(keyspace, end)),
        None => keyspace.0.checked_add(1).map(|next| prefix(Keyspace(next)).into()),
    }
}

/// Returns a whole key above all keys of a keyspace and not above any key of the next one.
pub(super) fn beyond(keyspace: Keyspace) -> Vec<u8> {
    end(keyspace, Bounds::ALL).unwrap_or_else(|| vec![0xff; PREFIX + MAX_KEY + 1])
}

fn prefix(keyspace: Keyspace) -> [u8; PREFIX] {
    keyspace.0.to_be_bytes()
}
