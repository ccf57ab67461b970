use std::sync::Arc;

use slate_query::raw::{Doc, Writer};
use slate_store::Keyspace;

use super::{
    IndexInfo, KeyStatistics, damaged,
    index::{self, keyspace},
};
use crate::Result;

/// A collection: where its records lie, and its indexes in the order they were declared.
#[derive(Clone, Debug)]
pub(crate) struct CollectionInfo {
    pub(crate) name: Box<str>,
    pub(crate) records: Keyspace,
    pub(crate) indexes: Vec<Arc<IndexInfo>>,
    /// Of the records' own keyspace.
    pub(crate) statistics: Option<KeyStatistics>,
}

impl CollectionInfo {
    pub(crate) fn new(name: &str, records: Keyspace) -> Self {
        Self { name: name.into(), records, indexes: Vec::new(), statistics: None }
    }

    pub(crate) fn index(&self, name: &str) -> Option<&Arc<IndexInfo>> {
        self.indexes.iter().find(|index| &*index.name == name)
    }

    pub(super) fn read(name: &str, doc: Doc<'_>) -> Result<Self> {
        let records = keyspace(doc, "records").ok_or_else(|| damaged(&format!("the records of collection {name}")))?;
        let indexes = doc.get("indexes").and_then(|value| value.as_array());
        let indexes = indexes.ok_or_else(|| damaged(&format!("the indexes of collection {name}")))?;
        let indexes = indexes.values().map(|value| {
            let index = value.as_document().map(IndexInfo::read).transpose()?.flatten();
            index.map(Arc::new).ok_or_else(|| damaged(&format!("an index of collection {name}")))
        });
        let statistics = doc.get("statistics").and_then(|value| value.as_document()).and_then(KeyStatistics::read);
        Ok(Self { name: name.into(), records, indexes: indexes.collect::<Result<_>>()?, statistics })
    }

    pub(super) fn write(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        index::put_keyspace(&mut writer, "records", self.records);
        if let Some(statistics) = &self.statistics {
            statistics.write(&mut writer, "statistics");
        }
        writer.open_array(b"indexes");
        for (position, index) in self.indexes.iter().enumerate() {
            writer.open_document(position.to_string().as_bytes());
            index.write(&mut writer);
            writer.close();
        }
        writer.finish()
    }
}
