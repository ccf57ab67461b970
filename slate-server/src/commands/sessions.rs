//! The commands of logical sessions.

use bson::{RawBsonRef, RawDocument, RawDocumentBuf, rawdoc};

use super::Call;
use crate::{
    auth::{self, Action, Target, UserName},
    failure::{Code, Failure, Result},
    session::SessionId,
};

/// Maximum number of sessions that a command may name: the most that drivers send at a time.
const MAX_SESSIONS_NAMED: usize = 10_000;

/// `startSession`: creates a session and returns its id.
pub(super) fn start(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let id = SessionId::new(call.owner());
    call.shared().sessions.use_session(id)?;
    Ok(rawdoc! { "id": id.document(), "timeoutMinutes": 30, "ok": 1.0 })
}

/// `{refreshSessions: [lsid, …]}`: renews the lifetimes of the sessions; creates those that do not exist.
pub(super) fn refresh(call: &Call<'_>) -> Result<RawDocumentBuf> {
    for id in ids(call)? {
        call.shared().sessions.use_session(id)?;
    }
    Ok(rawdoc! { "ok": 1.0 })
}

/// `{endSessions: [lsid, …]}`: ends these sessions of the user. Drivers send it without a login, too: then there are none.
pub(super) async fn end(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let ids = ids(call)?;
    if call.is_of_stranger() {
        return Ok(rawdoc! { "ok": 1.0 });
    }
    call.shared().sessions.end(call.shared(), ids).await;
    Ok(rawdoc! { "ok": 1.0 })
}

/// `{killSessions: [lsid, …]}`: ends these sessions, or all of the user if none is named. Administrators end those of others by an `lsid` with a
/// `uid`, as `currentOp` shows it.
pub(super) async fn kill(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let owner = call.owner();
    let has_users = call.shared().settings.authentication;
    let ids = list(call, |lsid| SessionId::read_of_any(lsid, owner))?;
    if has_users
        && ids.iter().any(|id| id.owner() != owner)
        && !auth::holds(call, &Target::Cluster, Action::KillAnySession)
    {
        let message = format!("not authorized on {} to execute command killSessions", call.command.database());
        return Err(Failure::new(Code::UNAUTHORIZED, message));
    }
    if ids.is_empty() {
        call.shared().sessions.end_all(call.shared(), |id| !has_users || id.owner() == owner).await;
        return Ok(rawdoc! { "ok": 1.0 });
    }
    call.shared().sessions.end(call.shared(), ids).await;
    Ok(rawdoc! { "ok": 1.0 })
}

/// `{killAllSessions: [{user, db}, …]}`: ends the sessions of these users, or all sessions if none is named.
pub(super) async fn kill_all(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let names = list(call, |user| UserName::read(RawBsonRef::Document(user), call.command.database()))?;
    let mut owners = Vec::new();
    for name in &names {
        owners.extend(call.shared().users.get(name).await?.map(|user| user.digest));
    }
    let is_meant = |id: SessionId| names.is_empty() || id.owner().is_some_and(|owner| owners.contains(&owner));
    call.shared().sessions.end_all(call.shared(), is_meant).await;
    Ok(rawdoc! { "ok": 1.0 })
}

/// Reads the user's sessions that a command names.
fn ids(call: &Call<'_>) -> Result<Vec<SessionId>> {
    list(call, |lsid| SessionId::read(lsid, call.owner()))
}

/// Reads the documents in the command's first field.
fn list<T>(call: &Call<'_>, read: impl Fn(&RawDocument) -> Result<T>) -> Result<Vec<T>> {
    let name = &*call.command.name;
    let mistyped = || Failure::mistyped(name, "array of documents");
    let list = call.command.get(name)?.and_then(|list| list.as_array()).ok_or_else(mistyped)?;
    if list.into_iter().nth(MAX_SESSIONS_NAMED).is_some() {
        let message = format!("{name} names at most {MAX_SESSIONS_NAMED} sessions");
        return Err(Failure::new(Code::BAD_VALUE, message));
    }
    list.into_iter().map(|document| read(document?.as_document().ok_or_else(mistyped)?)).collect()
}
