use std::sync::Arc;

use slate_query::{
    Code,
    collation::Collation,
    raw::{Doc, Kind, Value, Writer},
};
use slate_store::Keyspace;

use super::{
    CollectionStatistics, IndexInfo, KeyStatistics, Validator, damaged,
    index::{keyspace, put_keyspace, read_collation, write_collation},
};
use crate::{
    Error, Result,
    metrics::{CollectionUses, UseTable},
};

/// A collection: the keyspace of its records, and its indexes in the order in which they were declared.
#[derive(Clone, Debug)]
pub(crate) struct CollectionInfo {
    pub(crate) name: Arc<str>,
    pub(crate) records: Keyspace,
    /// How requests without a collation of their own compare strings. `None`: by their bytes.
    pub(crate) collation: Option<Collation>,
    pub(crate) validator: Option<Arc<Validator>>,
    /// Whether the log of changes stores the documents before and after each change for streams.
    pub(crate) keeps_images: bool,
    /// The complete indexes, which queries may use.
    pub(crate) indexes: Vec<Arc<IndexInfo>>,
    /// Stored under a separate key ([`CollectionStatistics::store`]), not with the definition.
    pub(crate) statistics: Option<Arc<CollectionStatistics>>,
    /// The indexes that are being built: writers maintain their entries, but no query uses them.
    pub(crate) building: Vec<Arc<IndexInfo>>,
    /// How often operations of this process used the collection by `_id` and by scans. Not stored.
    pub(crate) uses: Arc<CollectionUses>,
}

impl CollectionInfo {
    /// Returns a collection without documents and indexes, in place of one that does not exist.
    pub(crate) fn absent(name: &str) -> Self {
        // No keyspace has this number, and a missing keyspace is empty.
        Self::new(name, Keyspace(u32::MAX))
    }

    pub(crate) fn new(name: &str, records: Keyspace) -> Self {
        Self {
            name: name.into(),
            records,
            collation: None,
            validator: None,
            keeps_images: false,
            indexes: Vec::new(),
            building: Vec::new(),
            statistics: None,
            uses: Arc::default(),
        }
    }

    /// Returns every index whose entries writers maintain: the complete ones, then those being built.
    pub(crate) fn maintained(&self) -> impl Iterator<Item = &Arc<IndexInfo>> {
        self.indexes.iter().chain(&self.building)
    }

    /// Returns the keyspaces of its records and of its indexes.
    pub(super) fn keyspaces(&self) -> impl Iterator<Item = Keyspace> {
        std::iter::once(self.records).chain(self.maintained().map(|index| index.keyspace))
    }

    /// Returns the index at a position of [`CollectionInfo::maintained`].
    pub(crate) fn maintained_at(&self, place: usize) -> Option<&Arc<IndexInfo>> {
        match place.checked_sub(self.indexes.len()) {
            None => self.indexes.get(place),
            Some(place) => self.building.get(place),
        }
    }

    pub(crate) fn maintained_at_mut(&mut self, place: usize) -> Option<&mut Arc<IndexInfo>> {
        match place.checked_sub(self.indexes.len()) {
            None => self.indexes.get_mut(place),
            Some(place) => self.building.get_mut(place),
        }
    }

    /// Returns whether the index at a position of [`CollectionInfo::maintained`] is being built.
    pub(crate) fn is_building(&self, place: usize) -> bool {
        place >= self.indexes.len()
    }

    /// Returns the indexes that queries may use.
    pub(crate) fn usable(&self) -> impl Iterator<Item = &Arc<IndexInfo>> {
        self.indexes.iter().filter(|index| !index.hidden)
    }

    pub(crate) fn index(&self, name: &str) -> Option<&Arc<IndexInfo>> {
        self.indexes.iter().find(|index| &*index.name == name)
    }

    /// Returns the complete index that was declared with these keys, if there is one.
    ///
    /// # Errors
    /// `AmbiguousIndexKeyPattern` (181) if there are several, which differ in their other options.
    pub(crate) fn index_of_keys(&self, keys: Doc<'_>) -> Result<Option<&Arc<IndexInfo>>> {
        let mut found = self.indexes.iter().filter(|index| index.has_keys(keys));
        match (found.next(), found.next()) {
            (Some(_), Some(_)) => {
                let message = format!("several indexes have the keys {keys:?}; name one of them");
                Err(Error::invalid(Code::AMBIGUOUS_INDEX_KEY_PATTERN, message).at("index"))
            }
            (index, _) => Ok(index),
        }
    }

    /// Returns the statistics of an index; `None` if they have not been gathered since it was built.
    pub(crate) fn index_statistics(&self, index: &IndexInfo) -> Option<&KeyStatistics> {
        self.statistics.as_ref()?.of_index(index.keyspace)
    }

    /// Returns the number of records according to the statistics, 0 without statistics.
    pub(crate) fn known_records(&self) -> u64 {
        self.record_statistics().map_or(0, |statistics| statistics.keys)
    }

    /// Returns the number of keys of the records and the indexes according to the statistics, 0 without statistics.
    pub(crate) fn known_keys(&self) -> u64 {
        let indexes = self.indexes.iter().filter_map(|index| self.index_statistics(index));
        indexes.fold(self.known_records(), |sum, index| sum.saturating_add(index.keys))
    }

    pub(crate) fn record_statistics(&self) -> Option<&KeyStatistics> {
        self.statistics.as_ref().map(|statistics| &statistics.records)
    }

    /// Returns whether an index has been built since the statistics were gathered; false without statistics.
    pub(crate) fn lacks_statistics(&self) -> bool {
        self.statistics.is_some() && self.indexes.iter().any(|index| self.index_statistics(index).is_none())
    }

    pub(super) fn read(name: &str, doc: Doc<'_>) -> Result<Self> {
        let records = keyspace(doc, "records").ok_or_else(|| damaged(&format!("the records of collection {name}")))?;
        let indexes = read_indexes(name, doc, "indexes")?;
        let indexes = indexes.ok_or_else(|| damaged(&format!("the indexes of collection {name}")))?;
        let building = read_indexes(name, doc, "building")?.unwrap_or_default();
        let collation = read_collation(doc, &format!("collection {name}"))?;
        let validator = Validator::read(doc, collation.as_ref())?.map(Arc::new);
        let keeps_images = doc.get("images").and_then(Value::as_bool).unwrap_or_default();
        Ok(Self { collation, validator, keeps_images, indexes, building, ..Self::new(name, records) })
    }

    /// Lets the collection and its indexes count their uses in `table`, which has the counts of earlier versions of the
    /// catalog.
    pub(super) fn count_in(&mut self, table: &UseTable) {
        self.uses = table.of_collection(self.records);
        for index in self.indexes.iter_mut().chain(&mut self.building) {
            let uses = table.of_index(index.keyspace, index.hidden);
            Arc::make_mut(index).uses = uses;
        }
    }

    pub(super) fn write(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        put_keyspace(&mut writer, "records", self.records);
        write_collation(&mut writer, self.collation.as_ref());
        self.validator.iter().for_each(|validator| validator.write(&mut writer));
        if self.keeps_images {
            writer.append(b"images", Value::new(Kind::Boolean, &[1]));
        }
        write_indexes(&mut writer, "indexes", &self.indexes);
        if !self.building.is_empty() {
            write_indexes(&mut writer, "building", &self.building);
        }
        writer.finish()
    }
}

fn read_indexes(collection: &str, doc: Doc<'_>, field: &str) -> Result<Option<Vec<Arc<IndexInfo>>>> {
    let Some(indexes) = doc.get(field).and_then(|value| value.as_array()) else { return Ok(None) };
    let indexes = indexes.values().map(|value| {
        let index = value.as_document().map(IndexInfo::read).transpose()?.flatten();
        index.map(Arc::new).ok_or_else(|| damaged(&format!("an index of collection {collection}")))
    });
    indexes.collect::<Result<_>>().map(Some)
}

fn write_indexes(writer: &mut Writer, field: &str, indexes: &[Arc<IndexInfo>]) {
    writer.open_array(field.as_bytes());
    for (position, index) in indexes.iter().enumerate() {
        writer.open_document(position.to_string().as_bytes());
        index.write(writer);
        writer.close();
    }
    writer.close();
}
