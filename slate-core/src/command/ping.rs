use bson::RawDocumentBuf;

use super::{call::Call, common::Common, concern::Concerns, reply::Reply};
use crate::{Result, call::DatabaseHandle};

/// `{ping: 1}`: returns a reply without fields of its own.
pub(super) fn run(_: &DatabaseHandle, mut call: Call<'_>) -> Result<RawDocumentBuf> {
    Common::take(&mut call.fields, Concerns::Neither)?;
    call.fields.finish()?;
    Reply::default().finish()
}
