use std::collections::BTreeMap;

use slate_query::{
    key::{self, TypeBits},
    pattern::Keys,
    raw::{Doc, Value},
};

use crate::{
    Error, Result,
    catalog::{CollectionInfo, IndexInfo},
    entry::{EntryBuffer, FieldOrder, Held, RecordKey},
};

/// The entries of one document in one index, in the order of their keys: mostly one.
#[derive(Debug, Default)]
pub(crate) struct EntryMap(Vec<(Vec<u8>, Vec<u8>)>);

impl EntryMap {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn contains_key(&self, key: &[u8]) -> bool {
        self.0.binary_search_by(|(there, _)| there.as_slice().cmp(key)).is_ok()
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.0.iter().map(|(key, _)| key)
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(&Vec<u8>) -> bool) {
        self.0.retain(|(key, _)| keep(key));
    }
}

impl IntoIterator for EntryMap {
    type Item = (Vec<u8>, Vec<u8>);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Entries of one index that are only gathered, in one buffer: what insertions make by the thousand.
#[derive(Debug, Default)]
pub(super) struct Entries {
    bytes: Vec<u8>,
    /// Where each begins, and how long its key and its value are.
    spans: Vec<Span>,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    start: usize,
    key: usize,
    value: usize,
}

impl Entries {
    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) {
        self.spans.push(Span { start: self.bytes.len(), key: key.len(), value: value.len() });
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Moves the other's entries behind these.
    pub(super) fn append(&mut self, other: &mut Self) {
        let shift = self.bytes.len();
        self.bytes.append(&mut other.bytes);
        self.spans.extend(other.spans.drain(..).map(|span| Span { start: span.start + shift, ..span }));
    }

    /// The entries as they were pushed.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.spans
            .iter()
            .filter_map(|span| self.bytes.get(span.start..)?.get(..span.key + span.value)?.split_at_checked(span.key))
    }

    /// The entries in the order of their keys.
    pub(super) fn sorted(&self) -> Vec<(&[u8], &[u8])> {
        let mut sorted: Vec<_> = self.iter().collect();
        sorted.sort_unstable();
        sorted
    }
}

/// Makes the entries of documents, and gathers what the indexes must be noted to hold: one traversal per index, with
/// buffers that are used again.
#[derive(Debug, Default)]
pub(crate) struct EntryMaker {
    keys: Keys,
    buffer: EntryBuffer,
    order: FieldOrder,
    id_key: Vec<u8>,
    id_bits: TypeBits,
    /// News about an index, by its place in the collection.
    notes: BTreeMap<usize, IndexInfo>,
}

impl EntryMaker {
    /// Appends the entries that `index`, the one at that place of the collection, holds for a document.
    pub(super) fn make(
        &mut self,
        at: usize,
        index: &IndexInfo,
        record_key: &[u8],
        document: Doc<'_>,
        mut sink: impl FnMut(&[u8], &[u8]),
    ) -> Result<()> {
        if index.partial.as_ref().is_some_and(|partial| !partial.filter.matches(document)) {
            return Ok(());
        }
        index.pattern.keys(document, &mut self.keys).map_err(Error::from)?;
        if index.sparse {
            self.keys.drop_absent();
        }
        self.id_key.clear();
        self.id_bits.clear();
        let id = document.get("_id").unwrap_or(Value::NULL);
        key::encode_typed(Some(id), &mut self.id_key, &mut self.id_bits);
        let record = RecordKey { key: record_key, bits: self.id_bits.as_bytes() };
        self.order.note(index, document);
        let mut truncated = false;
        for (values, bits) in self.keys.iter() {
            truncated |= self.buffer.build(index, (values, bits), record, &self.order) == Held::Truncated;
            sink(&self.buffer.key, &self.buffer.value);
        }
        let known = self.notes.get(&at).unwrap_or(index);
        let news = self.keys.multikey().iter().zip(&known.multikey).any(|(met, known)| met & !known != 0);
        if news || (truncated && !known.truncated) {
            let noted = self.notes.entry(at).or_insert_with(|| index.clone());
            noted.note_multikey(self.keys.multikey());
            noted.truncated |= truncated;
        }
        Ok(())
    }

    /// All entries of a document, index by index.
    pub(super) fn of_document(
        &mut self,
        collection: &CollectionInfo,
        record_key: &[u8],
        document: Doc<'_>,
        mut wanted: impl FnMut(&IndexInfo) -> bool,
    ) -> Result<Vec<(usize, EntryMap)>> {
        let indexes = collection.maintained().enumerate().filter(|(_, index)| wanted(index));
        indexes.map(|(at, index)| Ok((at, self.map(at, index, record_key, document)?))).collect()
    }

    /// The entries of a document in the index at that place.
    pub(crate) fn of_index(
        &mut self,
        collection: &CollectionInfo,
        at: usize,
        record_key: &[u8],
        document: Doc<'_>,
    ) -> Result<EntryMap> {
        let index = collection.maintained_at(at);
        index.map_or_else(|| Ok(EntryMap::new()), |index| self.map(at, index, record_key, document))
    }

    fn map(&mut self, at: usize, index: &IndexInfo, record_key: &[u8], document: Doc<'_>) -> Result<EntryMap> {
        let mut entries = Vec::new();
        self.make(at, index, record_key, document, |key, value| entries.push((key.to_vec(), value.to_vec())))?;
        entries.sort_unstable();
        // Values that are too long are cut, and may then make one key.
        entries.dedup_by(|(key, _), (before, _)| key == before);
        Ok(EntryMap(entries))
    }

    /// The news gathered so far.
    pub(crate) fn take_notes(&mut self) -> Vec<(usize, IndexInfo)> {
        std::mem::take(&mut self.notes).into_iter().collect()
    }
}
