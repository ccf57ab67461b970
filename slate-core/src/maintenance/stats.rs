use std::ops::ControlFlow;

use slate_store::{Bounds, Keyspace, View};

use crate::{Result, catalog::CollectionInfo};

/// The sizes of a collection and its indexes; see [`ReadCollection::stats`](crate::ReadCollection::stats).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CollectionStats {
    /// Number of documents.
    pub documents: u64,
    /// Bytes of the documents, their field tables and their keys, without the store's overhead.
    pub bytes: u64,
    /// The indexes in the order of their declaration; indexes that are being built come last.
    pub indexes: Vec<IndexStats>,
}

/// The sizes of an index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexStats {
    /// Name of the index.
    pub name: String,
    /// Number of entries: one for each distinct combination of indexed values of a document.
    pub entries: u64,
    /// Bytes of the entries, without the store's overhead.
    pub bytes: u64,
}

pub(crate) fn stats<V: View>(view: &V, collection: &CollectionInfo) -> Result<CollectionStats> {
    let indexes = collection.maintained().map(|index| {
        let (entries, bytes) = measure(view, index.keyspace)?;
        Ok(IndexStats { name: index.name.to_string(), entries, bytes })
    });
    let indexes = indexes.collect::<Result<_>>()?;
    let (documents, bytes) = measure(view, collection.records)?;
    Ok(CollectionStats { documents, bytes, indexes })
}

fn measure<V: View>(view: &V, keyspace: Keyspace) -> Result<(u64, u64)> {
    let (mut keys, mut bytes) = (0, 0_u64);
    view.scan(keyspace, Bounds::ALL, |key, value| -> ControlFlow<()> {
        keys += 1;
        bytes = bytes.saturating_add(u64::try_from(key.len() + value.len()).unwrap_or(u64::MAX));
        ControlFlow::Continue(())
    })?;
    Ok((keys, bytes))
}
