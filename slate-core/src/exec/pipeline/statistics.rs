//! `$collStats` and `$indexStats`.

use bson::{Bson, DateTime, Document, doc};
use slate_query::{Code, pipeline::CollStats, raw::OwnedValue};
use slate_store::{Bounds, View};

use crate::{
    Error, ErrorKind, IndexDescription, Result,
    catalog::CollectionInfo,
    clock,
    document::{long, number},
    exec::Resources,
    metrics::Uses,
    namespace,
    stats::{self, sizes},
};

/// Returns the document about a collection.
///
/// # Errors
/// Fails with `NamespaceNotFound` (26) if the collection does not exist and the stage requests its sizes, its count or its scans.
pub(super) fn of_collection<V: View>(
    stage: &CollStats,
    view: &V,
    collection: &CollectionInfo,
    resources: &Resources,
) -> Result<Vec<OwnedValue>> {
    let name = &*collection.name;
    let mut described =
        doc! { "ns": namespace::full(name).into_owned(), "localTime": DateTime::from_millis(clock::now_millis()) };
    let needs_collection = stage.counts() || stage.scale().is_some() || stage.counts_scans();
    if needs_collection && resources.catalog.collection(name).is_none() {
        let message = format!("Collection [{name}] not found.");
        return Err(Error::new(ErrorKind::NotFound, Code::NAMESPACE_NOT_FOUND, message).at("$collStats"));
    }
    if let Some(scale) = stage.scale() {
        let stats = stats::stats(view, collection, &resources.interrupt)?;
        described.insert("storageStats", sizes::of_collection(&stats, collection, scale));
    }
    if stage.counts() {
        let mut interrupt = resources.interrupt.clone();
        let mut ended = Ok(());
        let counted = view.count(collection.records, Bounds::ALL, |_| {
            ended = interrupt.tick();
            ended.is_ok()
        })?;
        ended?;
        described.insert("count", number(counted.unwrap_or_default()));
    }
    if stage.counts_scans() {
        let scans = long(collection.uses.scans.count());
        described.insert("queryExecStats", doc! { "collectionScans": { "total": scans, "nonTailable": scans } });
    }
    Ok(vec![OwnedValue::from(&Bson::Document(described))])
}

/// Returns a document for each index, `_id` first; none if the collection does not exist.
///
/// # Errors
/// Fails if a definition cannot be converted, which is a bug.
pub(super) fn of_indexes(collection: &CollectionInfo, resources: &Resources) -> Result<Vec<OwnedValue>> {
    if resources.catalog.collection(&collection.name).is_none() {
        return Ok(Vec::new());
    }
    let id = doc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" };
    let mut described = vec![describe(id, &collection.uses.ids)];
    for (index, description) in collection.maintained().zip(IndexDescription::all(collection)) {
        let definition = Document::try_from(description.to_definition()).map_err(Error::conversion)?;
        let mut index = describe(definition, &index.uses);
        if description.state == crate::IndexState::Building {
            index.insert("building", true);
        }
        described.push(index);
    }
    Ok(described.into_iter().map(|document| OwnedValue::from(&Bson::Document(document))).collect())
}

fn describe(definition: Document, uses: &Uses) -> Document {
    let (name, key) = (definition.get("name").cloned(), definition.get("key").cloned());
    let accesses = doc! { "ops": long(uses.count()), "since": DateTime::from_millis(uses.since_millis()) };
    doc! { "name": name, "key": key, "accesses": accesses, "spec": definition }
}
