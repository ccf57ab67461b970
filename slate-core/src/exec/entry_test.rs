use std::sync::Arc;

use slate_query::{
    key::{self, TypeReader},
    pattern::Direction,
    raw::{Doc, Writer},
};

use crate::{
    catalog::IndexInfo,
    entry::{FieldOrder, IndexEntry},
    plan::EntryFilter,
};

/// Evaluates a filter on the values of entries.
pub(super) struct EntryTest {
    filter: Arc<EntryFilter>,
    /// The names and directions of the fields that are decoded.
    fields: Vec<(String, Direction)>,
    /// The document of the last entry.
    document: Vec<u8>,
}

impl EntryTest {
    pub(super) fn new(filter: Arc<EntryFilter>, index: &IndexInfo) -> Self {
        let fields = index.pattern.fields().iter().take(filter.fields).enumerate();
        let fields = fields.map(|(field, (_, direction))| (EntryFilter::name(field), *direction)).collect();
        Self { filter, fields, document: Vec::new() }
    }

    /// Returns whether the filter reads the `_id`.
    pub(super) fn needs_id(&self) -> bool {
        self.filter.has_id
    }

    /// Returns whether the filter matches. `None` if the entry is damaged.
    pub(super) fn holds(&mut self, entry: &IndexEntry<'_>) -> Option<bool> {
        let (_, bits) = FieldOrder::split(entry.extras)?;
        let mut reader = TypeReader::new(bits);
        let mut buffer = std::mem::take(&mut self.document);
        buffer.clear();
        let mut document = Writer::into_buffer(buffer);
        let mut rest = entry.values;
        for (name, direction) in &self.fields {
            key::decode_into(&mut rest, *direction, &mut reader, name.as_bytes(), &mut document)?;
        }
        if self.filter.has_id {
            reader.next_part();
            key::decode_into(&mut &*entry.record_key, Direction::Ascending, &mut reader, b"_id", &mut document)?;
        }
        self.document = document.finish();
        Some(self.filter.filter.matches(Doc::new(&self.document)))
    }
}
