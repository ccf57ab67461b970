use bson::RawDocumentBuf;

use super::{call::Call, concern::Concerns, reply::Reply};
use crate::Result;

/// `{ping: 1}`: returns a reply without fields of its own.
pub(super) fn run(mut call: Call<'_>) -> Result<RawDocumentBuf> {
    call.common(Concerns::Neither)?;
    call.fields.finish()?;
    Reply::default().finish()
}
