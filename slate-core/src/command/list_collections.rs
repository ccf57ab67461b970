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
    catalog::{CollectionInfo, ViewInfo},
    clock::now_millis,
};

/// `{listCollections: 1, filter, nameOnly}`.
pub(super) fn run(mut call: Call<'_>) -> Result<RawDocumentBuf> {
    let fields = &mut call.fields;
    let filter = fields.object("filter")?;
    let name_only = fields.truth("nameOnly")?.unwrap_or_default();
    fields.truth("authorizedCollections")?;
    let batch = fields.object("cursor")?.map(batch_size).transpose()?.flatten();
    let common = call.common(Concerns::Neither)?;
    call.fields.finish()?;
    let bindings = Bindings::new(now_millis());
    let filter = filter.map(|filter| Filter::parse_with(filter, &bindings)).transpose()?;

    let catalog = call.at.scope.catalog(&common.call)?;
    let collections = catalog.collections().map(|collection| {
        let mut document = rawdoc! { "name": &*collection.name, "type": "collection" };
        if !name_only {
            document.append(cstr!("options"), collection_options(collection));
            document.append(cstr!("info"), rawdoc! { "readOnly": false });
            document.append(cstr!("idIndex"), rawdoc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" });
        }
        (&collection.name, document)
    });
    let views = catalog.views().map(|view| {
        let mut document = rawdoc! { "name": &*view.name, "type": "view" };
        if !name_only {
            document.append(cstr!("options"), view_options(view));
            document.append(cstr!("info"), rawdoc! { "readOnly": true });
        }
        (&view.name, document)
    });
    let described: BTreeMap<_, _> = collections.chain(views).collect();
    let matches = |document: &RawDocumentBuf| match &filter {
        Some(filter) => filter.evaluate(Doc::from(document)),
        None => Ok(true),
    };
    let mut listed: Vec<RawDocumentBuf> = Vec::with_capacity(described.len());
    for document in described.into_values() {
        if matches(&document)? {
            listed.push(document);
        }
    }
    let mut reply = Reply::default();
    let cursor = CommandCursor::listing(listed, common.namespace("$cmd.listCollections"), &common);
    call.at.first_batch(&mut reply, cursor, CursorOptions::in_batches(batch))?;
    reply.finish()
}

fn collection_options(collection: &CollectionInfo) -> RawDocumentBuf {
    let mut options = RawDocumentBuf::new();
    if let Some(collation) = &collection.collation {
        options.append(cstr!("collation"), collation.to_document());
    }
    if let Some(validator) = &collection.validator {
        options.append(cstr!("validator"), validator.document.clone());
        options.append(cstr!("validationLevel"), validator.level.name());
        options.append(cstr!("validationAction"), validator.action.name());
    }
    options
}

fn view_options(view: &ViewInfo) -> RawDocumentBuf {
    let stages: RawArrayBuf = view.pipeline.iter().cloned().collect();
    let mut options = rawdoc! { "viewOn": &*view.on, "pipeline": stages };
    if let Some(collation) = &view.collation {
        options.append(cstr!("collation"), collation.to_document());
    }
    options
}
