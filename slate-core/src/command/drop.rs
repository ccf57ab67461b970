use bson::RawDocumentBuf;

use super::{call::Call, common::Common, concern::Concerns, reply::Reply};
use crate::{
    Result,
    catalog::Namespace,
    operation::{
        read_op::ReadOp,
        scope::{DatabaseHandle, Scope},
        write_op::WriteOp,
    },
};

/// `{drop: collection or view}`. Dropping one that does not exist is not an error.
pub(super) fn run(database: &DatabaseHandle, mut call: Call<'_>) -> Result<RawDocumentBuf> {
    let collection = call.collection()?;
    let common = Common::take(&mut call.fields, Concerns::Write)?;
    call.fields.refuse(&["collectionUUID"])?;
    call.fields.finish()?;
    let dropped = Scope::Database(database.clone()).write(&common.interrupt, |writer| {
        let there = Option::try_from(writer.read(collection, ReadOp::Definition)?)?;
        writer.run::<bool>(WriteOp::DropCollection(collection))?;
        Ok(there)
    })?;
    let mut reply = Reply::default();
    if let Some(Namespace::Collection(there)) = &dropped {
        // The count includes the index on `_id`.
        reply.count("nIndexesWas", there.indexes.len() + 1);
    }
    if dropped.is_some() {
        reply.text("ns", &common.namespace(collection));
    }
    reply.finish()
}
