//! Logins and logouts, and the user of a connection.

use bson::{RawArrayBuf, RawBson, RawDocumentBuf, cstr, rawdoc};

use super::Call;
use crate::{auth::login, failure::Result};

/// `saslStart`: begins a login.
pub(super) async fn sasl_start(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let options = call.command.document();
    login::start(call, options, call.command.database()).await.map(succeeded)
}

/// `saslContinue`: continues a login.
pub(super) fn sasl_continue(call: &Call<'_>) -> Result<RawDocumentBuf> {
    login::proceed(call).map(succeeded)
}

/// `authenticate`: logs in with a client certificate.
pub(super) async fn authenticate(call: &Call<'_>) -> Result<RawDocumentBuf> {
    login::certificate(call, call.command.document()).await.map(succeeded)
}

/// `logout`: removes the user of the connection.
pub(super) fn logout(call: &Call<'_>) -> Result<RawDocumentBuf> {
    call.connection.login.log_out();
    Ok(rawdoc! { "ok": 1.0 })
}

/// `{connectionStatus: 1, showPrivileges}`: returns the user of the connection.
pub(super) fn connection_status(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let user = call.user();
    let list = |item: Option<RawBson>| {
        let mut list = RawArrayBuf::new();
        item.into_iter().for_each(|item| list.push(item));
        list
    };
    let name = user.as_ref().map(|user| RawBson::Document(user.name.document()));
    let roles = user.as_ref().map(|user| user.role_documents()).unwrap_or_default();
    let mut info = rawdoc! { "authenticatedUsers": list(name), "authenticatedUserRoles": roles };
    if call.truth("showPrivileges")? {
        let privileges = user.as_ref().map(|user| user.privilege_documents()).unwrap_or_default();
        info.append(cstr!("authenticatedUserPrivileges"), privileges);
    }
    Ok(rawdoc! { "authInfo": info, "ok": 1.0 })
}

/// Adds the login fields to the reply of `hello`: `saslSupportedMechs` and `speculativeAuthenticate`.
pub(super) async fn append_to_hello(call: &Call<'_>, reply: &mut RawDocumentBuf) -> Result<()> {
    if let Some(user) = call.command.get("saslSupportedMechs")?.and_then(|user| user.as_str()) {
        let mechanisms = login::mechanisms(call, user).await?;
        let names: RawArrayBuf = mechanisms.into_iter().map(|mechanism| mechanism.name()).collect();
        reply.append(cstr!("saslSupportedMechs"), names);
    }
    if let Some(begun) = login::speculative(call).await? {
        reply.append(cstr!("speculativeAuthenticate"), begun);
    }
    Ok(())
}

fn succeeded(reply: RawDocumentBuf) -> RawDocumentBuf {
    let mut reply = reply;
    reply.append(cstr!("ok"), 1.0);
    reply
}
