//! The sizes of collections and databases as documents in MongoDB's form.

use bson::{Document, doc};

use super::{CollectionStats, DatabaseStats, IndexStats};
use crate::{
    catalog::CollectionInfo,
    document::{long, number},
};

/// Returns the sizes of a collection, in units of `scale` bytes. The index on `_id` is the collection itself and has no
/// size of its own.
pub(crate) fn of_collection(stats: &CollectionStats, collection: &CollectionInfo, scale: u64) -> Document {
    let scaled = |bytes: u64| number(bytes / scale.max(1));
    let index_bytes = sum(&stats.indexes);
    let mut index_sizes = doc! { "_id_": 0 };
    index_sizes.extend(stats.indexes.iter().map(|index| (index.name.clone(), scaled(index.bytes))));
    let building: Vec<&str> = collection.building.iter().map(|index| &*index.name).collect();
    let mut sizes = doc! { "size": scaled(stats.document_bytes), "count": number(stats.documents) };
    if let Some(average) = stats.document_bytes.checked_div(stats.documents) {
        sizes.insert("avgObjSize", number(average));
    }
    sizes.extend(doc! {
        "storageSize": scaled(stats.bytes),
        "capped": false,
        "nindexes": number(length(stats.indexes.len() + 1)),
        "indexBuilds": building,
        "totalIndexSize": scaled(index_bytes),
        "totalSize": scaled(stats.bytes.saturating_add(index_bytes)),
        "indexSizes": index_sizes,
        "scaleFactor": number(scale),
    });
    sizes
}

/// Returns the sizes of a collection that does not exist.
pub(crate) fn of_no_collection(scale: u64) -> Document {
    doc! {
        "size": 0,
        "count": 0,
        "storageSize": 0,
        "nindexes": 0,
        "totalIndexSize": 0,
        "totalSize": 0,
        "indexSizes": {},
        "scaleFactor": number(scale),
    }
}

/// Returns the sizes of a database, in units of `scale` bytes.
pub(crate) fn of_database(stats: &DatabaseStats, scale: u64) -> Document {
    let scaled = |bytes: u64| self::scaled(bytes, scale);
    let collections = || stats.collections.values();
    let documents: u64 = collections().map(|collection| collection.documents).sum();
    let indexes: usize = collections().map(|collection| collection.indexes.len() + 1).sum();
    let (data, index_bytes) = (stats.document_bytes(), stats.index_bytes());
    let stored = data.saturating_add(stats.record_overhead_bytes());
    #[expect(clippy::cast_precision_loss, reason = "the average is a double")]
    let average = if documents == 0 { 0.0 } else { data as f64 / documents as f64 };
    doc! {
        "collections": long(length(stats.collections.len())),
        "views": long(length(stats.views)),
        "objects": long(documents),
        "avgObjSize": average,
        "dataSize": scaled(data),
        "storageSize": scaled(stored),
        "indexes": long(length(indexes)),
        "indexSize": scaled(index_bytes),
        "totalSize": scaled(stored.saturating_add(index_bytes)),
        "scaleFactor": long(scale),
    }
}

/// Returns a size of a database in units of `scale` bytes.
#[expect(clippy::cast_precision_loss, reason = "these sizes are doubles in MongoDB's reply")]
pub(crate) fn scaled(bytes: u64, scale: u64) -> f64 {
    bytes as f64 / scale.max(1) as f64
}

fn length(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

fn sum(indexes: &[IndexStats]) -> u64 {
    indexes.iter().map(|index| index.bytes).fold(0, u64::saturating_add)
}
