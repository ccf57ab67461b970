use std::collections::BTreeMap;

use bson::{RawArrayBuf, RawDocumentBuf, cstr, rawdoc};
use slate_query::{expression::Bindings, filter::Filter, raw::Doc};

use super::{
    aggregate::batch_size,
    call::Call,
    concern::Concerns,
    cursor::{CommandCursor, CursorOptions},
    reply::Reply,
};
use crate::{
    Result,
    catalog::{Catalog, CollectionInfo, ViewInfo},
    changes::collection_uuid,
    clock::now_millis,
    namespace,
    stage_names::shown_stages,
};

/// `{listCollections: 1, filter, nameOnly}`: the collections and views of a database, sorted by name.
pub(super) fn run(mut call: Call<'_>) -> Result<RawDocumentBuf> {
    let fields = &mut call.fields;
    let filter = fields.object("filter")?;
    let name_only = fields.truth("nameOnly")?.unwrap_or_default();
    fields.truth("authorizedCollections")?;
    let batch = fields.object("cursor")?.map(batch_size).transpose()?.flatten();
    let common = call.common(Concerns::Neither)?;
    call.fields.finish()?;
    let bindings = Bindings::new(now_millis());
    let parse = |filter| Ok(Filter::parse_with(filter, &bindings)?);
    let filter = filter.map(|filter| common.call.during(|| parse(filter))).transpose()?;

    let catalog = call.at.scope.catalog(&common.call)?;
    // The collections of this database, under their own names.
    let own = |stored: &str| {
        let (database, own) = namespace::split(stored);
        (database == common.database).then(|| own.to_owned())
    };
    let collections = catalog.collections().filter_map(|collection| {
        let name = own(&collection.name)?;
        let mut document = rawdoc! { "name": &*name, "type": "collection" };
        if !name_only {
            document.append(cstr!("options"), collection_options(collection));
            document.append(cstr!("info"), collection_info(&catalog, collection));
            document.append(cstr!("idIndex"), rawdoc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" });
        }
        Some((name, document))
    });
    let mut described: BTreeMap<String, RawDocumentBuf> = collections.collect();
    for view in catalog.views() {
        let Some(name) = own(&view.name) else { continue };
        let mut document = rawdoc! { "name": &*name, "type": "view" };
        if !name_only {
            document.append(cstr!("options"), view_options(view)?);
            document.append(cstr!("info"), rawdoc! { "readOnly": true });
        }
        described.insert(name, document);
    }
    let matches = |document: &RawDocumentBuf| match &filter {
        Some(filter) => filter.evaluate(Doc::from(document)),
        None => Ok(true),
    };
    let mut listed: Vec<RawDocumentBuf> = Vec::with_capacity(described.len());
    // The limits of the command end the filter also within one document.
    common.call.during(|| {
        for document in described.into_values() {
            if matches(&document)? {
                listed.push(document);
            }
        }
        Ok(())
    })?;
    let mut reply = Reply::default();
    let memory = call.at.scope.memory()?;
    let cursor = CommandCursor::listing(listed, common.namespace("$cmd.listCollections"), &common, &memory)?;
    call.at.first_batch(&mut reply, cursor, CursorOptions::in_batches(batch))?;
    reply.finish()
}

fn collection_info(catalog: &Catalog, collection: &CollectionInfo) -> RawDocumentBuf {
    let mut info = rawdoc! { "readOnly": false };
    // The UUID contains the ID of the log of changes: without a log there is none.
    if let Some(log) = catalog.change_log() {
        let uuid = bson::Uuid::from_bytes(collection_uuid(log.id, collection.records));
        info.append(cstr!("uuid"), bson::Binary::from(uuid));
    }
    info
}

fn collection_options(collection: &CollectionInfo) -> RawDocumentBuf {
    let mut options = RawDocumentBuf::new();
    if let Some(collation) = &collection.collation {
        options.append(cstr!("collation"), collation.to_document());
    }
    if let Some(validator) = &collection.validator {
        validator.append_options(&mut options);
    }
    if collection.keeps_images {
        options.append(cstr!("changeStreamPreAndPostImages"), rawdoc! { "enabled": true });
    }
    options
}

fn view_options(view: &ViewInfo) -> Result<RawDocumentBuf> {
    let stages: RawArrayBuf = shown_stages(&view.pipeline).into_iter().collect();
    let mut options = rawdoc! { "viewOn": namespace::split(&view.on).1, "pipeline": stages };
    if let Some(collation) = &view.collation {
        options.append(cstr!("collation"), collation.to_document());
    }
    Ok(options)
}
