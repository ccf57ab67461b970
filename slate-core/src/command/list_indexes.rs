use bson::{RawDocumentBuf, rawdoc};
use slate_query::Code;

use super::{
    aggregate::batch_size,
    call::Call,
    concern::Concerns,
    cursor::{CommandCursor, CursorOptions},
    reply::Reply,
};
use crate::{Error, ErrorKind, IndexDescription, IndexState, Result};

/// `{listIndexes: collection}`: returns the index on `_id` first, then the others in the order of their declaration.
pub(super) fn run(mut call: Call<'_>) -> Result<RawDocumentBuf> {
    let collection = call.collection()?;
    let batch = call.fields.object("cursor")?.map(batch_size).transpose()?.flatten();
    let common = call.common(Concerns::Neither)?;
    call.fields.finish()?;

    let there = call.at.scope.definition(collection, &common.call)?;
    let there = there.ok_or_else(|| no_collection(&common.full_name(collection)))?.into_collection()?;
    let id_index = rawdoc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" };
    let indexes = IndexDescription::all(&there).into_iter().filter(|index| index.state == IndexState::Ready);
    let listed = std::iter::once(id_index).chain(indexes.map(|index| index.to_definition()));
    let mut reply = Reply::default();
    let memory = call.at.scope.memory()?;
    let cursor = CommandCursor::listing(listed, common.full_name(collection), &common, &memory)?;
    call.at.first_batch(&mut reply, cursor, CursorOptions::in_batches(batch))?;
    reply.finish()
}

/// Returns the error `NamespaceNotFound` (26).
pub(super) fn no_collection(namespace: &str) -> Error {
    Error::new(ErrorKind::NotFound, Code::NAMESPACE_NOT_FOUND, format!("ns does not exist: {namespace}"))
}
