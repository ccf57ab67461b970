use bson::RawDocumentBuf;
use slate_query::{
    Code,
    raw::{Kind, Value},
};

use super::{call::Call, concern::Concerns, reply::Reply};
use crate::{Error, Result, call::Writer, catalog::Namespace, changes::collection_uuid};

/// `{drop: collection or view, collectionUUID}`. Dropping one that does not exist is not an error, unless its UUID is given.
pub(super) fn run(mut call: Call<'_>) -> Result<RawDocumentBuf> {
    let collection = call.collection()?;
    let common = call.common(Concerns::Write)?;
    let uuid = call.fields.value("collectionUUID");
    if let Some(uuid) = uuid.filter(|uuid| uuid.kind() != Kind::Binary) {
        return Err(call.fields.mistyped("collectionUUID", uuid, "binData"));
    }
    call.fields.finish()?;
    let dropped = call.at.scope.write(&common.call, |writer| {
        let there = writer.definition(collection)?;
        if let Some(uuid) = uuid {
            check_uuid(writer, collection, there.as_ref(), uuid)?;
        }
        writer.drop_collection(collection)?;
        Ok(there)
    })?;
    let mut reply = Reply::default();
    if let Some(Namespace::Collection(there)) = &dropped {
        // The count includes the index on `_id`.
        reply.count("nIndexesWas", there.indexes.len() + 1);
    }
    if dropped.is_some() {
        reply.text("ns", &common.full_name(collection));
    }
    reply.finish()
}

/// Checks that the collection has this UUID.
///
/// # Errors
/// Fails with `CollectionUUIDMismatch` (361) if it has another one, is a view, or does not exist, and if changes are not logged, because collections
/// then have no UUIDs.
fn check_uuid(writer: &dyn Writer, name: &str, there: Option<&Namespace>, uuid: Value<'_>) -> Result<()> {
    let actual = match (there, writer.catalog().change_log()) {
        (Some(Namespace::Collection(there)), Some(log)) => Some(collection_uuid(log.id, there.records)),
        _ => None,
    };
    // The bytes of a binary value: its length (4 bytes), its subtype (4 for a UUID), its content.
    if actual.is_some_and(|actual| uuid.bytes().get(4..) == Some([&[4], &actual[..]].concat().as_slice())) {
        return Ok(());
    }
    let message = format!("Collection UUID does not match that of the collection '{name}'");
    Err(Error::invalid(Code::COLLECTION_UUID_MISMATCH, message).at("collectionUUID"))
}
