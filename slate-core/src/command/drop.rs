use std::sync::Arc;

use bson::RawDocumentBuf;

use super::{call::Call, common::Common, concern::Concerns, reply::Reply};
use crate::{
    Result,
    catalog::CollectionInfo,
    operation::handle::DatabaseHandle,
    operation::{read_op::ReadOp, scope::Scope, write_op::WriteOp},
};

/// `{drop: collection}`. A collection that does not exist is not an error.
pub(super) fn run(database: &DatabaseHandle, mut call: Call<'_>) -> Result<RawDocumentBuf> {
    let collection = call.collection()?;
    let common = Common::take(&mut call.fields, Concerns::Write)?;
    call.fields.refuse(&["collectionUUID"])?;
    call.fields.finish()?;
    let dropped = Scope::Database(database.clone()).write(&common.interrupt, |writer| {
        let there = Option::<Arc<CollectionInfo>>::try_from(writer.read(collection, ReadOp::Definition)?)?;
        writer.run::<bool>(WriteOp::DropCollection(collection))?;
        Ok(there.map(|there| there.indexes.len()))
    })?;
    let mut reply = Reply::default();
    if let Some(indexes) = dropped {
        // The count includes the index on `_id`.
        reply.count("nIndexesWas", u64::try_from(indexes + 1).unwrap_or(u64::MAX));
        reply.text("ns", &common.namespace(collection));
    }
    reply.finish()
}
