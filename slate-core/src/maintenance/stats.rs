use slate_store::{Bounds, Estimate, Keyspace, View};

use crate::{Result, catalog::CollectionInfo};

/// What a collection holds; see [`ReadCollection::stats`](crate::ReadCollection::stats).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CollectionStats {
    /// How many documents.
    pub documents: u64,
    /// The bytes of the documents with the tables of their fields, and of their keys, without what the store takes to hold
    /// them.
    pub bytes: u64,
    /// Each index, in the order they were declared; those that are being built come last.
    pub indexes: Vec<IndexStats>,
}

/// What an index holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexStats {
    /// The index's name.
    pub name: String,
    /// How many entries: one for each distinct combination of values that a document has.
    pub entries: u64,
    /// The bytes of the entries, without what the store takes to hold them.
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
    let (Estimate::Exact(keys) | Estimate::AtLeast(keys)) = view.estimate(keyspace, Bounds::ALL, u64::MAX)?;
    Ok((keys, view.bytes(keyspace)?))
}
