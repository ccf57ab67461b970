//! `COLLECTION.metadata.json`: the options and indexes of a collection, as `mongodump` writes them.

use std::{
    io,
    path::{Path, PathBuf},
};

use bson::{Bson, Document, doc};
use slate_core::{Index, IndexDescription};

use super::source::read_to_string;
use crate::json::{self, Dialect};

/// How the names of these files end.
pub(crate) const SUFFIX: &str = ".metadata.json";

/// What an index on a collection can have here. Every other option is reported.
const KNOWN: &[&str] = &["v", "key", "name", "ns", "unique", "sparse", "partialFilterExpression", "background"];

/// What a file of metadata says.
#[derive(Debug, Default)]
pub(crate) struct Metadata {
    pub(crate) indexes: Vec<Index>,
    /// What cannot be restored, and why.
    pub(crate) ignored: Vec<String>,
}

/// The file of metadata beside a dump, if there is one.
pub(super) fn file_of(dump: &Path, stem: &str) -> Option<PathBuf> {
    let folder = dump.parent()?;
    ["", ".gz", ".zst"].iter().map(|end| folder.join(format!("{stem}{SUFFIX}{end}"))).find(|path| path.is_file())
}

impl Metadata {
    /// Reads a file.
    ///
    /// # Errors
    /// Fails if it cannot be read or is not such a file.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let document = json::document(&read_to_string(path)?, Dialect::QUERY);
        let document = document.map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))?;
        let mut metadata = Self::default();
        for index in document.get_array("indexes").into_iter().flatten().filter_map(Bson::as_document) {
            metadata.add(index);
        }
        if let Ok(kind) = document.get_str("type")
            && kind != "collection"
        {
            metadata.ignored.push(format!("this is a {kind}; it is restored as a collection"));
        }
        let options = document.get_document("options").into_iter().flat_map(Document::keys);
        metadata.ignored.extend(options.map(|option| format!("the collection's option {option} has no equivalent")));
        Ok(metadata)
    }

    fn add(&mut self, index: &Document) {
        let name = index.get_str("name").unwrap_or_default();
        let Ok(keys) = index.get_document("key") else { return };
        if name == "_id_" || keys == &doc! { "_id": 1 } {
            return;
        }
        if let Some(option) = index.keys().find(|key| !KNOWN.contains(&key.as_str())) {
            self.ignored.push(format!("the index {name} is not created: its option {option} is not supported"));
            return;
        }
        // Older versions of mongodump write directions as doubles or int64.
        let direction = |direction: &Bson| match direction {
            Bson::Int32(1) | Bson::Int64(1) => Some(1),
            Bson::Int32(-1) | Bson::Int64(-1) => Some(-1),
            Bson::Double(number) if *number > 0.0 => Some(1),
            Bson::Double(number) if *number < 0.0 => Some(-1),
            _ => None,
        };
        let mut known = Document::new();
        for (field, value) in keys {
            let Some(direction) = direction(value) else {
                self.ignored.push(format!("the index {name} is not created: the kind {value} is not supported"));
                return;
            };
            known.insert(field, direction);
        }
        let mut created = Index::on(known).named(name);
        if is_true(index, "unique") {
            created = created.unique();
        }
        if is_true(index, "sparse") {
            created = created.sparse();
        }
        if let Ok(filter) = index.get_document("partialFilterExpression") {
            created = created.only(filter);
        }
        self.indexes.push(created);
    }
}

fn is_true(index: &Document, option: &str) -> bool {
    match index.get(option) {
        Some(Bson::Boolean(value)) => *value,
        Some(Bson::Int32(value)) => *value != 0,
        Some(Bson::Double(value)) => *value != 0.0,
        _ => false,
    }
}

/// The metadata of a collection with these indexes, as canonical extended JSON.
pub(crate) fn write(collection: &str, indexes: &[IndexDescription]) -> String {
    let mut described = vec![Bson::Document(doc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" })];
    described.extend(indexes.iter().map(|index| {
        let document = |raw: &bson::RawDocumentBuf| Document::try_from(raw.as_ref()).unwrap_or_default();
        let mut options = doc! { "v": 2, "key": document(&index.keys), "name": &index.name };
        if index.unique {
            options.insert("unique", true);
        }
        if index.sparse {
            options.insert("sparse", true);
        }
        if let Some(filter) = &index.only {
            options.insert("partialFilterExpression", document(filter));
        }
        Bson::Document(options)
    }));
    let metadata = doc! { "indexes": described, "collectionName": collection, "type": "collection" };
    Bson::Document(metadata).into_canonical_extjson().to_string()
}
