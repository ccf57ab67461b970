//! The commands on the whole database: `fsync`, `backup` and `shutdown`.

use std::{
    ops::ControlFlow,
    path::{Component, Path},
    sync::Arc,
};

use bson::{RawDocumentBuf, rawdoc};

use super::Call;
use crate::{
    failure::{Code, Failure, Result},
    operations::Progress,
};

/// `{fsync: 1}`: returns when every commit is on the device.
pub(super) async fn fsync(call: &Call<'_>) -> Result<RawDocumentBuf> {
    if call.truth("lock")? {
        return Err(Failure::not_implemented("fsync with lock"));
    }
    call.shared().database.flush().await?;
    Ok(rawdoc! { "numFiles": 1, "ok": 1.0 })
}

/// `{backup: NAME}`: writes a copy of the last commit of the whole store into the server's backup folder. Only Slate has this command. It stops
/// when it is killed or its client disconnects. A client names a file in that folder and no other, so that it cannot write elsewhere on the
/// machine.
pub(super) async fn backup(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let shared = call.shared();
    let Some(folder) = &shared.settings.backup_directory else {
        let message = "the server was started without a folder for backups (--backup-directory)";
        return Err(Failure::new(Code::ILLEGAL_OPERATION, message));
    };
    let Some(name) = call.command.get("backup")?.and_then(|name| name.as_str()) else {
        return Err(Failure::mistyped("backup", "string"));
    };
    if !is_file_name(name) {
        let message = format!("{name:?} is not the name of a file in the folder for backups");
        return Err(Failure::new(Code::BAD_VALUE, message));
    }
    let Ok(_only) = shared.backups.try_acquire() else {
        let message = "another backup is being written: the server writes one at a time";
        return Err(Failure::new(Code::CONFLICTING, message));
    };
    let path = folder.join(name);
    let progress = Arc::new(Progress::default());
    call.connection.place.show(&progress);
    let token = call.token.clone();
    let copy = shared.database.with_cancel(token.clone()).backup_while(&path, move |done, total| {
        progress.set(done, total);
        if token.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    copy.await?;
    Ok(rawdoc! { "path": path.display().to_string(), "ok": 1.0 })
}

/// Whether a name denotes a file directly in a folder.
fn is_file_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    let is_one = matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == name);
    is_one && !name.contains(['\\', ':', '\0'])
}

/// `shutdown` over the network: ends the server as a signal does.
pub(super) fn shutdown(call: &Call<'_>) -> Result<RawDocumentBuf> {
    call.shared().stopping.send_replace(true);
    Ok(rawdoc! { "ok": 1.0 })
}
