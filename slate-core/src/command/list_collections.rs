use std::collections::BTreeMap;

use bson::{RawArrayBuf, RawDocumentBuf, cstr, rawdoc};
use slate_query::{filter::Filter, raw::Doc};

use super::{call::Call, common::Common, concern::Concerns, reply::Reply};
use crate::{
    Result,
    catalog::{CollectionInfo, ViewInfo},
    operation::handle::DatabaseHandle,
};

/// `{listCollections: 1, filter, nameOnly}`.
pub(super) fn run(database: &DatabaseHandle, mut call: Call<'_>) -> Result<RawDocumentBuf> {
    let fields = &mut call.fields;
    let filter = fields.object("filter")?;
    let name_only = fields.truth("nameOnly")?.unwrap_or_default();
    fields.truth("authorizedCollections")?;
    fields.object("cursor")?;
    let common = Common::take(fields, Concerns::Neither)?;
    call.fields.finish()?;
    let filter = filter.map(Filter::parse).transpose()?;

    let catalog = database.catalog()?;
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
    let mut listed = described
        .into_values()
        .filter(|document| filter.as_ref().is_none_or(|filter| filter.matches(Doc::from(document))));
    let mut reply = Reply::default();
    reply.cursor(&common.namespace("$cmd.listCollections"), |batch, name| {
        let next = listed.next();
        if let Some(document) = &next {
            batch.document(name, Doc::from(document));
        }
        Ok(next.is_some())
    })?;
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
