use std::{collections::BTreeSet, ops::Range};

use super::{
    Direction, KeyPattern, Positions,
    expand::{Emit, expand},
};
use crate::{
    Result,
    key::{TypeBits, encode_typed},
    path::Path,
    raw::{Doc, Value},
    work,
};

/// The entries of one document in an index. The buffers are reused for the next document.
#[derive(Debug, Default)]
pub struct Keys {
    bytes: Vec<u8>,
    losses: Vec<u8>,
    bits: TypeBits,
    entries: Vec<Entry>,
    multikey: Vec<u64>,
    arrays: BTreeSet<Box<str>>,
}

#[derive(Debug)]
struct Entry {
    key: Range<usize>,
    bits: Range<usize>,
    presence: Presence,
}

/// Whether any field of an entry exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    Some,
    None,
}

impl Keys {
    /// Creates an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the keys and type bits of the entries, sorted, without repetitions. A key is the concatenation of the
    /// encoded values, each in its field's direction.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> {
        self.entries.iter().map(|entry| (self.key(entry), self.losses.get(entry.bits.clone()).unwrap_or_default()))
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether the list is empty: before the first document, or after [`Keys::drop_absent`].
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns a mask for each field but a wildcard: bit i is set if there is an array at the first i + 1 names of its path. Names
    /// beyond the 64th share the last bit.
    pub fn multikey(&self) -> &[u64] {
        &self.multikey
    }

    pub(crate) fn multikey_mut(&mut self) -> &mut [u64] {
        &mut self.multikey
    }

    /// Returns the paths of the wildcard at which a document has an array; only for a wildcard index.
    pub fn arrays(&self) -> &BTreeSet<Box<str>> {
        &self.arrays
    }

    pub(crate) fn add_array(&mut self, path: &str) {
        if !self.arrays.contains(path) {
            self.arrays.insert(path.into());
        }
    }

    /// Removes the entries in which every field is missing, as a sparse index does.
    pub fn drop_absent(&mut self) {
        self.entries.retain(|entry| entry.presence == Presence::Some);
    }

    fn key(&self, entry: &Entry) -> &[u8] {
        self.bytes.get(entry.key.clone()).unwrap_or_default()
    }

    pub(crate) fn clear(&mut self, fields: usize) {
        self.bytes.clear();
        self.losses.clear();
        self.entries.clear();
        self.arrays.clear();
        self.multikey.clear();
        self.multikey.resize(fields, 0);
    }

    /// Adds an entry of these values. `None`: missing.
    #[inline]
    pub(crate) fn push<'v>(&mut self, values: impl Iterator<Item = (Option<Value<'v>>, Direction)>) {
        let Self { bytes, losses, bits, entries, .. } = self;
        let (start, lost) = (bytes.len(), losses.len());
        let mut presence = Presence::None;
        bits.clear();
        for (value, direction) in values {
            if value.is_some() {
                presence = Presence::Some;
            }
            let field = bytes.len();
            encode_typed(value, bytes, bits);
            direction.apply(bytes.get_mut(field..).unwrap_or_default());
        }
        losses.extend_from_slice(bits.as_bytes());
        entries.push(Entry { key: start..bytes.len(), bits: lost..losses.len(), presence });
    }

    /// Sorts the entries and removes repetitions. Of equal keys the first is retained.
    pub(crate) fn settle(&mut self) {
        if self.entries.len() < 2 {
            return;
        }
        let mut entries = std::mem::take(&mut self.entries);
        work::sort_by(&mut entries, |a, b| self.key(a).cmp(self.key(b)));
        entries.dedup_by(|later, earlier| {
            let same = self.key(later) == self.key(earlier);
            if same && later.presence == Presence::Some {
                earlier.presence = Presence::Some;
            }
            same
        });
        self.entries = entries;
    }
}

impl KeyPattern {
    /// Writes into `out` (cleared first) the entries of `doc`. Every document has at least one.
    ///
    /// A missing field has the key of null and differs in the type bits. An array has the keys of its elements, an
    /// empty one that of undefined. Fields that lead through the same array are paired element by element.
    ///
    /// # Errors
    /// `CannotIndexParallelArrays` (171) if two fields lead through different arrays; 16746 if a name is both a
    /// position of an array and a field of a document in it.
    pub fn keys(&self, doc: Doc<'_>, out: &mut Keys) -> Result<()> {
        out.clear(self.fields.len());
        expand(&self.fields, doc, Positions::AndFields, &mut Collect { fields: &self.fields, keys: out })?;
        out.settle();
        Ok(())
    }
}

struct Collect<'c> {
    fields: &'c [(Path, Direction)],
    keys: &'c mut Keys,
}

impl<'a> Emit<'a> for Collect<'_> {
    #[inline]
    fn key(&mut self, values: &[Option<Value<'a>>]) {
        self.keys.push(values.iter().copied().zip(self.fields.iter().map(|(_, direction)| *direction)));
    }

    fn array(&mut self, field: usize, names: usize) {
        if let Some(mask) = self.keys.multikey.get_mut(field) {
            *mask |= 1 << names.saturating_sub(1).min(63);
        }
    }
}
