use std::collections::BTreeMap;

use slate_query::{
    key::{self, TypeBits},
    path::Path,
    pattern::Keys,
    raw::{Doc, Kind, Value, Writer, same},
};

use super::{entries::Entries, prepare::id};
use crate::{
    Result,
    catalog::{CollectionInfo, Held, IndexInfo},
    entry::{FieldOrder, RecordKey, write_entry},
};

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
    properties: BTreeMap<usize, IndexInfo>,
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
    pub(crate) fn take_properties(&mut self) -> Vec<(usize, IndexInfo)> {
        std::mem::take(&mut self.properties).into_iter().collect()
    }
}

impl DocumentEntries<'_, '_> {
    /// Appends the entries of the document in `index`, which is at this position of the collection.
    pub(super) fn append(&mut self, at: usize, index: &IndexInfo, entries: &mut Entries) -> Result<()> {
        let Self { document, record_key, maker: EntryMaker { keys, order, id, properties } } = self;
        if let Some(partial) = &index.partial
            && !partial.filter.evaluate(*document)?
        {
            return Ok(());
        }
        match &index.collation {
            None => make(index, *document, keys)?,
            Some(collation) => {
                let fields = index.pattern.fields();
                let is_first =
                    |path: &Path, name: &[u8]| path.parts().first().is_some_and(|first| first.name_bytes() == name);
                let is_indexed =
                    |name: &[u8]| index.wildcard.is_some() || fields.iter().any(|(path, _)| is_first(path, name));
                let mut collated = Writer::new();
                collation.write_fields(*document, is_indexed, &mut collated);
                make(index, Doc::new(&collated.finish()), keys)?;
            }
        }
        if index.sparse {
            keys.drop_absent();
        }
        let record = RecordKey { key: record_key, bits: id.bits.as_bytes() };
        order.note(index, *document);
        let mut truncated = false;
        for values in keys.iter() {
            truncated |= entries.write(|out| write_entry(index, values, record, order, out)) == Held::Truncated;
        }
        let known = properties.get(&at).unwrap_or(index);
        let has_new_arrays = known.wildcard.as_ref().is_some_and(|wildcard| !wildcard.arrays.include(keys.arrays()));
        let is_new =
            has_new_arrays || keys.multikey().iter().zip(&known.multikey).any(|(met, known)| met & !known != 0);
        if is_new || (truncated && !known.truncated) {
            let changed = properties.entry(at).or_insert_with(|| index.clone());
            changed.add_multikey(keys.multikey());
            changed.wildcard.iter_mut().for_each(|wildcard| wildcard.arrays.add(keys.arrays()));
            changed.truncated |= truncated;
        }
        Ok(())
    }

    /// Writes into `entries` (cleared first) the document's entries in the index at this position, in key order. Most
    /// documents have one.
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

/// Writes into `keys` (cleared first) the keys of a document.
fn make(index: &IndexInfo, document: Doc<'_>, keys: &mut Keys) -> Result<()> {
    match &index.wildcard {
        Some(wildcard) => wildcard.pattern.keys(document, keys)?,
        None => index.pattern.keys(document, keys)?,
    }
    Ok(())
}
