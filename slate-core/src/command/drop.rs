use bson::RawDocumentBuf;

use super::{call::Call, concern::Concerns, reply::Reply};
use crate::{Result, catalog::Namespace};

/// `{drop: collection or view}`. Dropping one that does not exist is not an error.
pub(super) fn run(mut call: Call<'_>) -> Result<RawDocumentBuf> {
    let collection = call.collection()?;
    let common = call.common(Concerns::Write)?;
    call.fields.refuse(&["collectionUUID"])?;
    call.fields.finish()?;
    let dropped = call.at.scope.write(&common.call, |writer| {
        let there = writer.definition(collection)?;
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
