use bson::{RawDocumentBuf, cstr, rawdoc};
use slate_query::{Code, raw::Doc};

use super::{call::Call, common::Common, concern::Concerns, reply::Reply};
use crate::{Error, ErrorKind, Result, catalog::IndexInfo, operation::handle::DatabaseHandle, operation::scope::Scope};

/// `{listIndexes: collection}`: returns the index on `_id` first, then the others in the order of their declaration.
pub(super) fn run(database: &DatabaseHandle, mut call: Call<'_>) -> Result<RawDocumentBuf> {
    let collection = call.collection()?;
    call.fields.object("cursor")?;
    let common = Common::take(&mut call.fields, Concerns::Neither)?;
    call.fields.finish()?;

    let there = Scope::Database(database.clone()).definition(collection)?;
    let there = there.ok_or_else(|| no_collection(&common.namespace(collection)))?;
    let id_index = rawdoc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" };
    let mut listed = std::iter::once(id_index).chain(there.indexes.iter().map(|index| describe(index)));
    let mut reply = Reply::default();
    reply.cursor(&common.namespace(collection), |batch, name| {
        let next = listed.next();
        if let Some(document) = &next {
            batch.document(name, Doc::from(document));
        }
        Ok(next.is_some())
    })?;
    reply.finish()
}

fn describe(index: &IndexInfo) -> RawDocumentBuf {
    let mut document = rawdoc! { "v": 2, "key": index.keys.clone(), "name": &*index.name };
    for (name, flag) in
        [(cstr!("unique"), index.unique), (cstr!("sparse"), index.sparse), (cstr!("hidden"), index.hidden)]
    {
        if flag {
            document.append(name, true);
        }
    }
    if let Some(partial) = &index.partial {
        document.append(cstr!("partialFilterExpression"), partial.document.clone());
    }
    if let Some(collation) = &index.collation {
        document.append(cstr!("collation"), collation.to_document());
    }
    document
}

/// Returns the error `NamespaceNotFound` (26).
pub(super) fn no_collection(namespace: &str) -> Error {
    Error::new(ErrorKind::NotFound, Code::NAMESPACE_NOT_FOUND, format!("ns does not exist: {namespace}"))
}
