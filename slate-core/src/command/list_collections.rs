use bson::{RawDocumentBuf, rawdoc};
use slate_query::{filter::Filter, raw::Doc};

use super::{call::Call, common::Common, concern::Concerns, reply::Reply};
use crate::{Result, operation::handle::DatabaseHandle};

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
    let described = catalog.collections().map(|collection| {
        let mut document = rawdoc! { "name": &*collection.name, "type": "collection" };
        if !name_only {
            let id_index = rawdoc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" };
            let mut options = RawDocumentBuf::new();
            if let Some(collation) = &collection.collation {
                options.append(bson::cstr!("collation"), collation.to_document());
            }
            if let Some(validator) = &collection.validator {
                options.append(bson::cstr!("validator"), validator.document.clone());
                options.append(bson::cstr!("validationLevel"), validator.level.name());
                options.append(bson::cstr!("validationAction"), validator.action.name());
            }
            document.append(bson::cstr!("options"), options);
            document.append(bson::cstr!("info"), rawdoc! { "readOnly": false });
            document.append(bson::cstr!("idIndex"), id_index);
        }
        document
    });
    let mut listed =
        described.filter(|document| filter.as_ref().is_none_or(|filter| filter.matches(Doc::from(document))));
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
