use std::collections::BTreeMap;

use slate_query::{
    key::{self, TypeBits},
    pattern::Keys,
    raw::{Doc, Kind, Value, leading, same},
};

use super::prepare::id;
use crate::{
    Error, Result,
    catalog::{CollectionInfo, Held, IndexInfo},
    entry::{FieldOrder, RecordKey, write_entry},
};

/// Entries of one index in one buffer.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    bytes: Vec<u8>,
    /// Offset of each entry, and the lengths of its key and value.
    spans: Vec<Span>,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    /// The first bytes of the key, padded with zeros. They decide most comparisons without reading the key.
    prefix: u128,
    start: usize,
    /// Lengths of key and value, which have a few thousand bytes at most.
    key: u32,
    value: u32,
}

impl Entries {
    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) {
        self.write(|out| {
            out.extend_from_slice(key);
            out.extend_from_slice(value);
            (key.len(), ())
        });
    }

    /// Adds an entry that `write` appends: the key, whose length it returns, followed by the value.
    fn write<R>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> (usize, R)) -> R {
        let start = self.bytes.len();
        let (length, result) = write(&mut self.bytes);
        let written = self.bytes.get(start..).unwrap_or_default();
        let (key, value) = written.split_at_checked(length).unwrap_or((written, &[]));
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.spans.push(Span { prefix: prefix(key), start, key: length(key), value: length(value) });
        result
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.spans.len()
    }

    /// Truncates to the first `len` entries.
    pub(super) fn truncate(&mut self, entries: usize) {
        if let Some(first) = self.spans.get(entries) {
            self.bytes.truncate(first.start);
            self.spans.truncate(entries);
        }
    }

    /// Moves the other's entries to the end of these.
    pub(super) fn append(&mut self, other: &mut Self) {
        let shift = self.bytes.len();
        self.bytes.append(&mut other.bytes);
        self.spans.extend(other.spans.drain(..).map(|span| Span { start: span.start + shift, ..span }));
    }

    /// Returns the entries in insertion order, or in key order after [`sort`](Self::sort).
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.iter_from(0)
    }

    /// Returns the entries without the first `skip`.
    pub(super) fn iter_from(&self, entries: usize) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.spans.iter().skip(entries).filter_map(|span| span.of(&self.bytes))
    }

    /// Sorts the entries by their keys.
    pub(super) fn sort(&mut self) {
        let Self { bytes, spans } = self;
        if spans.len() < 2 {
            return;
        }
        // Sorts by the prefixes first, which needs no unpredictable branches.
        spans.sort_unstable_by_key(|span| span.prefix);
        for alike in spans.chunk_by_mut(|a, b| a.prefix == b.prefix).filter(|alike| alike.len() > 1) {
            alike.sort_unstable_by(|a, b| a.of(bytes).cmp(&b.of(bytes)));
        }
    }

    /// Removes entries with equal keys from sorted entries, except one of each.
    fn dedup(&mut self) {
        let Self { bytes, spans } = self;
        let key = |span: &Span| span.of(bytes).map(|(key, _)| key);
        spans.dedup_by(|entry, before| key(entry) == key(before));
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(&[u8]) -> bool) {
        let Self { bytes, spans } = self;
        spans.retain(|span| span.of(bytes).is_some_and(|(key, _)| keep(key)));
    }

    /// Returns whether an entry has this key. The entries must be sorted.
    pub(crate) fn contains_key(&self, key: &[u8]) -> bool {
        let order = |span: &Span| span.of(&self.bytes).map(|(there, _)| there).cmp(&Some(key));
        self.spans.binary_search_by(order).is_ok()
    }

    /// Returns the keys of these entries that no entry of `others` has. Both must be sorted.
    pub(super) fn keys_without<'e>(&'e self, others: &'e Self) -> impl Iterator<Item = &'e [u8]> {
        let mut others = others.iter().map(|(key, _)| key).peekable();
        self.iter().map(|(key, _)| key).filter(move |key| {
            while others.next_if(|other| other < key).is_some() {}
            others.peek() != Some(key)
        })
    }
}

impl Span {
    /// Returns the key and the value.
    #[inline]
    fn of<'b>(&self, bytes: &'b [u8]) -> Option<(&'b [u8], &'b [u8])> {
        let [key, value] = [self.key, self.value].map(|length| usize::try_from(length).unwrap_or_default());
        bytes.get(self.start..)?.get(..key + value)?.split_at_checked(key)
    }
}

#[inline]
fn prefix(key: &[u8]) -> u128 {
    let (high, low) = key.split_at_checked(size_of::<u64>()).unwrap_or((key, &[]));
    u128::from(leading(high)) << u64::BITS | u128::from(leading(low))
}

/// The cached type bits of an `_id`, which the entries of all indexes repeat.
#[derive(Debug, Default)]
struct IdBits {
    kind: Option<Kind>,
    bytes: Vec<u8>,
    bits: TypeBits,
    /// A by-product of encoding that is not used.
    key: Vec<u8>,
}

impl IdBits {
    /// Computes the type bits of this `_id`, unless it is the same as last time.
    fn find(&mut self, id: Value<'_>) {
        if self.kind != Some(id.kind()) || !same(&self.bytes, id.bytes()) {
            self.kind = Some(id.kind());
            self.bytes.clear();
            self.bytes.extend_from_slice(id.bytes());
            self.key.clear();
            self.bits.clear();
            key::encode_typed(Some(id), &mut self.key, &mut self.bits);
        }
    }
}

/// Creates the index entries of documents, and collects new properties of the indexes (multikey, truncated). Each index
/// takes one traversal of the document; buffers are reused.
#[derive(Debug, Default)]
pub(crate) struct EntryMaker {
    keys: Keys,
    order: FieldOrder,
    id: IdBits,
    /// New properties of indexes, by position in the collection.
    notes: BTreeMap<usize, IndexInfo>,
}

/// Creates the entries of one document.
pub(crate) struct DocumentEntries<'m, 'd> {
    maker: &'m mut EntryMaker,
    record_key: &'d [u8],
    document: Doc<'d>,
}

impl EntryMaker {
    /// Starts with a document.
    pub(crate) fn document<'m, 'd>(&'m mut self, record_key: &'d [u8], document: Doc<'d>) -> DocumentEntries<'m, 'd> {
        self.id.find(id(document));
        DocumentEntries { maker: self, record_key, document }
    }

    /// Removes and returns the collected properties.
    pub(crate) fn take_notes(&mut self) -> Vec<(usize, IndexInfo)> {
        std::mem::take(&mut self.notes).into_iter().collect()
    }
}

impl DocumentEntries<'_, '_> {
    /// Appends the entries of the document in `index`, which is at this position of the collection.
    pub(super) fn append(&mut self, at: usize, index: &IndexInfo, entries: &mut Entries) -> Result<()> {
        let Self { document, record_key, maker: EntryMaker { keys, order, id, notes } } = self;
        if index.partial.as_ref().is_some_and(|partial| !partial.filter.matches(*document)) {
            return Ok(());
        }
        index.pattern.keys(*document, keys).map_err(Error::from)?;
        if index.sparse {
            keys.drop_absent();
        }
        let record = RecordKey { key: record_key, bits: id.bits.as_bytes() };
        order.note(index, *document);
        let mut truncated = false;
        for values in keys.iter() {
            truncated |= entries.write(|out| write_entry(index, values, record, order, out)) == Held::Truncated;
        }
        let known = notes.get(&at).unwrap_or(index);
        let news = keys.multikey().iter().zip(&known.multikey).any(|(met, known)| met & !known != 0);
        if news || (truncated && !known.truncated) {
            let noted = notes.entry(at).or_insert_with(|| index.clone());
            noted.note_multikey(keys.multikey());
            noted.truncated |= truncated;
        }
        Ok(())
    }

    /// Returns the entries of the document in the index at this position, in key order. Most documents have one.
    pub(crate) fn of_index(&mut self, collection: &CollectionInfo, at: usize, entries: &mut Entries) -> Result<()> {
        entries.clear();
        let Some(index) = collection.maintained_at(at) else { return Ok(()) };
        self.append(at, index, entries)?;
        entries.sort();
        // Truncated values can give equal keys.
        entries.dedup();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(keys: &[&[u8]]) -> Entries {
        let mut entries = Entries::default();
        keys.iter().for_each(|key| entries.push(key, b""));
        entries.sort();
        entries
    }

    #[test]
    fn prefixes_are_the_first_bytes_filled_up_with_zeros() {
        let long: Vec<u8> = (1..=40).collect();
        for length in 0..=long.len() {
            let mut filled = [0; 16];
            let kept = length.min(16);
            filled[..kept].copy_from_slice(&long[..kept]);
            assert_eq!(prefix(&long[..length]), u128::from_be_bytes(filled), "{length}");
        }
    }

    #[test]
    fn entries_are_sorted_by_whole_keys_however_much_they_begin_with_is_the_same() {
        for common in [0, 8, 15, 16, 40] {
            let mut keys: Vec<Vec<u8>> = (0..200_u8)
                .map(|n| [&vec![7; common][..], &n.wrapping_mul(77).to_be_bytes(), b"behind"].concat())
                .collect();
            let sorted = entries(&keys.iter().map(Vec::as_slice).collect::<Vec<_>>());
            keys.sort_unstable();
            assert!(sorted.iter().map(|(key, _)| key).eq(keys.iter().map(Vec::as_slice)), "{common} bytes in common");
        }
    }

    #[test]
    fn keys_are_those_that_no_other_entry_has() {
        let some = entries(&[b"b", b"a", b"d", b"c", b"f"]);
        for (others, expected) in [
            (&[][..], &b"abcdf"[..]),
            (&[b"a", b"b", b"c", b"d", b"f"], b""),
            (&[b"_", b"a", b"e", b"f", b"g"], b"bcd"),
            (&[b"d"], b"abcf"),
        ] {
            let others: Vec<&[u8]> = others.iter().map(|key: &&[u8; 1]| &key[..]).collect();
            assert_eq!(some.keys_without(&entries(&others)).collect::<Vec<_>>().concat(), expected);
        }
    }
}
