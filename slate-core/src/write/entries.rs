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

/// Entries of one index: key to value.
pub(super) type EntryMap = BTreeMap<Vec<u8>, Vec<u8>>;

/// Makes the entries of documents, and gathers what the indexes must be noted to hold: one traversal per index, with
/// buffers that are used again.
#[derive(Debug, Default)]
pub(super) struct EntryMaker {
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
        let mut found = Vec::new();
        for (at, index) in collection.indexes.iter().enumerate() {
            if wanted(index) {
                let mut entries = EntryMap::new();
                self.make(at, index, record_key, document, |key, value| {
                    entries.insert(key.to_vec(), value.to_vec());
                })?;
                found.push((at, entries));
            }
        }
        Ok(found)
    }

    /// The news gathered so far.
    pub(super) fn take_notes(&mut self) -> Vec<(usize, IndexInfo)> {
        std::mem::take(&mut self.notes).into_iter().collect()
    }
}
