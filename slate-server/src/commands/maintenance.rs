//! Work on the database as a whole.

use bson::{RawDocumentBuf, rawdoc};

use super::Call;
use crate::failure::{Code, Failure, Result};

/// `{fsync: 1}`: everything committed is on the device when it returns.
pub(super) async fn fsync(call: &Call<'_>) -> Result<RawDocumentBuf> {
    if call.truth("lock")? {
        return Err(Failure::not_implemented("fsync with lock"));
    }
    call.shared().database.flush().await?;
    Ok(rawdoc! { "numFiles": 1, "ok": 1.0 })
}

/// `shutdown` over the network: ends the server as a signal does.
pub(super) fn shutdown(call: &Call<'_>) -> Result<RawDocumentBuf> {
    if call.command.database != "admin" {
        return Err(Failure::new(Code::UNAUTHORIZED, "shutdown may only be run against the admin database."));
    }
    call.shared().stopping.send_replace(true);
    Ok(rawdoc! { "ok": 1.0 })
}
