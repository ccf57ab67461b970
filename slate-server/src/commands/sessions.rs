//! Logical sessions.

use bson::{RawDocument, RawDocumentBuf, rawdoc};

use super::Call;
use crate::{
    failure::{Failure, Result},
    session::SessionId,
};

/// `startSession`.
pub(super) fn start(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let id = SessionId::new(call.owner());
    call.shared().sessions.use_session(id)?;
    Ok(rawdoc! { "id": id.document(), "timeoutMinutes": 30, "ok": 1.0 })
}

/// `{refreshSessions: [lsid, …]}`.
pub(super) fn refresh(call: &Call<'_>) -> Result<RawDocumentBuf> {
    for id in ids(call)? {
        call.shared().sessions.use_session(id)?;
    }
    Ok(rawdoc! { "ok": 1.0 })
}

/// `{endSessions: [lsid, …]}`. Drivers send it without a login, too: who has not logged in has no sessions.
pub(super) async fn end(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let ids = ids(call)?;
    if call.is_of_stranger() {
        return Ok(rawdoc! { "ok": 1.0 });
    }
    call.shared().sessions.end(call.shared(), ids).await;
    Ok(rawdoc! { "ok": 1.0 })
}

/// `{killSessions: [lsid, …]}`: ends the sessions, or all of the user if none are named.
pub(super) async fn kill(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let ids = ids(call)?;
    if ids.is_empty() {
        let owner = call.owner();
        let has_users = call.shared().settings.authentication;
        call.shared().sessions.end_all(call.shared(), |id| !has_users || id.owner() == owner).await;
        return Ok(rawdoc! { "ok": 1.0 });
    }
    call.shared().sessions.end(call.shared(), ids).await;
    Ok(rawdoc! { "ok": 1.0 })
}

/// `killAllSessions`.
pub(super) async fn kill_all(call: &Call<'_>) -> Result<RawDocumentBuf> {
    call.shared().sessions.end_all(call.shared(), |_| true).await;
    Ok(rawdoc! { "ok": 1.0 })
}

fn ids(call: &Call<'_>) -> Result<Vec<SessionId>> {
    let name = &*call.command.name;
    let mistyped = || Failure::mistyped(name, "array of sessions");
    let list = call.command.get(name)?.and_then(|list| list.as_array()).ok_or_else(mistyped)?;
    let id = |lsid: Option<&RawDocument>| SessionId::read(lsid.ok_or_else(mistyped)?, call.owner());
    list.into_iter().map(|lsid| id(lsid?.as_document())).collect()
}
