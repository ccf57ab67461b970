use std::ops::ControlFlow;

use bson::RawDocumentBuf;
use slate_store::SizeDetail;

use super::{call::Call, concern::Concerns, list_indexes::no_collection, reply::Reply};
use crate::Result;

/// `{compact: collection}`: returns free space to the file system. The collections of a store share its files, so the whole store is compacted, in
/// steps between which other operations run. If the command is interrupted, the completed steps remain.
pub(super) fn run(mut call: Call<'_>) -> Result<RawDocumentBuf> {
    let collection = call.collection()?;
    call.fields.truth("force")?;
    call.fields.refuse(&["dryRun", "freeSpaceTargetMB"])?;
    let common = call.common(Concerns::Neither)?;
    call.fields.finish()?;
    let scope = call.at.scope;
    let database = scope.database("compact")?;
    let there = scope.definition(collection, &common.call)?;
    there.ok_or_else(|| no_collection(&common.full_name(collection)))?.into_collection()?;
    let bytes = || database.engine()?.size(SizeDetail::Known).map(|size| size.on_disk.unwrap_or_default());
    let before = bytes()?;
    let mut ended = Ok(());
    let compacted = database.engine_to_write()?.compact_while(database.lock_timeout(), &mut |_, _| {
        ended = common.call.check();
        if ended.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    if compacted.is_break() {
        ended?;
    }
    let mut reply = Reply::default();
    reply.count("bytesFreed", before.saturating_sub(bytes()?));
    reply.finish()
}
