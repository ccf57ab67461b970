use bson::{RawDocumentBuf, rawdoc};
use slate_query::Code;

use super::{aggregate::check_cursor, call::Call, common::Common, concern::Concerns, reply::Reply};
use crate::{
    Error, ErrorKind, IndexDescription, IndexState, Result,
    call::{DatabaseHandle, Scope},
};

/// `{listIndexes: collection}`: returns the index on `_id` first, then the others in the order of their declaration.
pub(super) fn run(database: &DatabaseHandle, mut call: Call<'_>) -> Result<RawDocumentBuf> {
    let collection = call.collection()?;
    call.fields.object("cursor")?.map_or(Ok(()), check_cursor)?;
    let common = Common::take(&mut call.fields, Concerns::Neither)?;
    call.fields.finish()?;

    let there = Scope::Database(database.clone()).definition(collection, &common.call)?;
    let there = there.ok_or_else(|| no_collection(&common.namespace(collection)))?.into_collection()?;
    let id_index = rawdoc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" };
    let indexes = IndexDescription::all(&there).into_iter().filter(|index| index.state == IndexState::Ready);
    let listed = std::iter::once(id_index).chain(indexes.map(|index| index.to_definition()));
    let mut reply = Reply::default();
    reply.documents(&common.namespace(collection), listed)?;
    reply.finish()
}

/// Returns the error `NamespaceNotFound` (26).
pub(super) fn no_collection(namespace: &str) -> Error {
    Error::new(ErrorKind::NotFound, Code::NAMESPACE_NOT_FOUND, format!("ns does not exist: {namespace}"))
}
