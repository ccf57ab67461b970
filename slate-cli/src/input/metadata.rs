//! `COLLECTION.metadata.json`: the options and indexes of a collection, as `mongodump` writes them.

use std::{
    io,
    path::{Path, PathBuf},
};

use bson::{Bson, Document, doc};

use super::source::read_to_string;
use crate::{
    json::{self, Dialect},
    output::canonical,
};

/// The suffix of these files' names.
pub(crate) const SUFFIX: &str = ".metadata.json";

/// The definition of a collection or of a view.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Metadata {
    /// `collection`, `view` or `timeseries`.
    pub(crate) kind: String,
    /// The fields of the command `create`.
    pub(crate) options: Document,
    /// The indexes without the one on `_id`, as `createIndexes` describes them.
    pub(crate) indexes: Vec<Document>,
}

/// Returns the metadata file that `mongodump` has written beside the dump of a collection, if it exists.
pub(super) fn file_of(dump: &Path, stem: &str) -> Option<PathBuf> {
    let folder = dump.parent()?;
    ["", ".gz", ".zst"].iter().map(|end| folder.join(format!("{stem}{SUFFIX}{end}"))).find(|path| path.is_file())
}

impl Default for Metadata {
    /// Returns the definition of a collection without options or indexes.
    fn default() -> Self {
        Self { kind: "collection".into(), options: Document::new(), indexes: Vec::new() }
    }
}

impl Metadata {
    /// Reads a file.
    ///
    /// # Errors
    /// Fails if it cannot be read or is not a document in JSON.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let document = json::document(&read_to_string(path)?, Dialect::QUERY);
        let document = document.map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))?;
        let kind = document.get_str("type").unwrap_or("collection").to_owned();
        let options = unversioned(document.get_document("options").cloned().unwrap_or_default());
        let indexes = document.get_array("indexes").into_iter().flatten().filter_map(Bson::as_document);
        let indexes = Self::indexes(indexes, &options);
        Ok(Self { kind, options, indexes })
    }

    /// Returns the indexes of a list without the one on `_id`. `options` are those of their collection.
    pub(crate) fn indexes<'i>(listed: impl IntoIterator<Item = &'i Document>, options: &Document) -> Vec<Document> {
        let others = listed.into_iter().filter(|index| !is_id(index));
        others.map(|index| with_collation(index, options)).collect()
    }

    /// Writes the definition of a collection of this name, as canonical extended JSON.
    pub(crate) fn write(&self, collection: &str) -> String {
        let mut metadata = doc! {};
        if !self.options.is_empty() {
            metadata.insert("options", unversioned(self.options.clone()));
        }
        let mut indexes = Vec::new();
        if self.kind == "collection" {
            indexes.push(Bson::Document(doc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" }));
        }
        indexes.extend(self.indexes.iter().cloned().map(unversioned).map(Bson::Document));
        metadata.insert("indexes", indexes);
        metadata.insert("collectionName", collection);
        metadata.insert("type", &self.kind);
        canonical(Bson::Document(metadata))
    }
}

fn is_id(index: &Document) -> bool {
    let direction = index.get_document("key").ok().filter(|keys| keys.len() == 1).and_then(|keys| keys.get("_id"));
    // Older versions of mongodump write directions as doubles or int64.
    matches!(direction, Some(Bson::Int32(1) | Bson::Int64(1))) || direction == Some(&Bson::Double(1.0))
}

/// Removes the version from the collation, if it has one: it is the version of a library, which differs between
/// systems.
pub(crate) fn unversioned(mut definition: Document) -> Document {
    if let Ok(collation) = definition.get_document_mut("collation") {
        collation.remove("version");
    }
    definition
}

/// Returns the definition of an index. If only its collection has a collation, which would otherwise apply, the index
/// gets the collation `simple`.
fn with_collation(index: &Document, options: &Document) -> Document {
    let mut index = unversioned(index.clone());
    if options.contains_key("collation") && !index.contains_key("collation") {
        index.insert("collation", doc! { "locale": "simple" });
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("users.metadata.json");
        let collation = doc! { "locale": "en", "strength": 2 };
        let metadata = Metadata {
            kind: "collection".into(),
            options: doc! { "collation": collation.clone(), "validator": { "a": { "$regex": "^a", "$options": "i" } } },
            indexes: vec![doc! { "v": 2, "key": { "a": 1 }, "name": "a_1", "unique": true, "collation": collation }],
        };
        std::fs::write(&path, metadata.write("users")).unwrap();
        assert_eq!(Metadata::read(&path).unwrap(), metadata);
    }

    #[test]
    fn an_index_without_a_collation_has_none() {
        let index = with_collation(&doc! { "key": { "a": 1 } }, &doc! { "collation": { "locale": "en" } });
        assert_eq!(index, doc! { "key": { "a": 1 }, "collation": { "locale": "simple" } });
    }
}
