use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use bson::{Binary, RawBsonRef, RawDocument, RawDocumentBuf, rawdoc, spec::BinarySubtype};

use super::{
    Credential, Mechanism, User, UserName,
    scram::{ClientFirst, Exchange},
};
use crate::{
    commands::{Call, has_open_cursor},
    failure::{Code, Failure, Result},
};

/// How long a user that was read is used without reading it again. Changes through this server apply at once. Others apply after this time: those
/// of the program that embeds the server, and a dropped database.
const FRESH: Duration = Duration::from_secs(1);

/// The conversation id of a login exchange. A connection has at most one.
const CONVERSATION: i32 = 1;

/// The user of a connection, and its current login exchange.
#[derive(Debug, Default)]
pub(crate) struct Login {
    /// Whether `state` has an identity, so that commands without a login take no lock.
    has_identity: AtomicBool,
    state: Mutex<LoginState>,
}

#[derive(Debug, Default)]
struct LoginState {
    identity: Option<Identity>,
    step: Option<LoginStep>,
}

#[derive(Clone, Debug)]
struct Identity {
    user: Arc<User>,
    version: u64,
    read: Instant,
}

impl Identity {
    /// Returns the user with the current roles; `None` if the user was dropped.
    async fn read_again(&self, call: &Call<'_>) -> Result<Option<Arc<User>>> {
        let user = call.shared().users.get(&self.user.name).await?;
        Ok(user.filter(|user| user.id == self.user.id))
    }

    fn has_lost_roles(&self, now: Option<&User>) -> bool {
        !now.is_some_and(|now| now.keeps_roles_of(&self.user))
    }
}

/// A login exchange that waits for the client's next message.
#[derive(Debug)]
enum LoginStep {
    Proof {
        user: UserName,
        known: Option<Arc<User>>,
        version: u64,
        exchange: Box<Exchange>,
        skips_empty: bool,
    },
    /// The client has proved its identity, and must confirm the server's by an empty message.
    Empty(Identity),
}

impl Login {
    /// Returns the user; `None` without a login.
    pub(crate) fn user(&self) -> Option<Arc<User>> {
        self.has_identity().then(|| self.state().identity.as_ref().map(|identity| Arc::clone(&identity.user))).flatten()
    }

    fn identity(&self) -> Option<Identity> {
        self.has_identity().then(|| self.state().identity.clone()).flatten()
    }

    fn has_identity(&self) -> bool {
        self.has_identity.load(Ordering::Acquire)
    }

    pub(crate) fn log_out(&self) {
        let mut state = self.state();
        self.has_identity.store(false, Ordering::Release);
        *state = LoginState::default();
    }

    fn state(&self) -> MutexGuard<'_, LoginState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the user of the connection. Fails with `ProtocolError` (17) if another user has logged in before: cursors and sessions belong to one
    /// user.
    fn enter(&self, identity: Identity) -> Result<()> {
        let mut state = self.state();
        if let Some(before) = state.identity.as_ref().filter(|before| before.user.name != identity.user.name) {
            let message = format!(
                "Each client connection may only be authenticated once. Previously authenticated as: {}",
                before.user.name
            );
            return Err(Failure::new(Code::PROTOCOL, message));
        }
        state.identity = Some(identity);
        self.has_identity.store(true, Ordering::Release);
        Ok(())
    }
}

/// Returns the user of the connection with the current roles; `None` without a login or if the user was dropped, which also logs the user out.
///
/// # Errors
/// Fails if the storage fails.
pub(crate) async fn current(call: &Call<'_>) -> Result<Option<Arc<User>>> {
    let (login, users) = (&call.connection.login, &call.shared().users);
    let Some(identity) = login.identity() else { return Ok(None) };
    let version = users.version();
    if identity.version == version && identity.read.elapsed() < FRESH {
        return Ok(Some(identity.user));
    }
    let user = identity.read_again(call).await?;
    // A change through this server has closed the cursors already. The program that embeds the server may have changed the user, too: then they are
    // closed again before a cursor is read.
    let may_have_cursors = identity.version == version || call.command.name == "getMore";
    if may_have_cursors && identity.has_lost_roles(user.as_deref()) {
        call.shared().close_cursors_of(&identity.user);
    }
    login.state().identity = user.clone().map(|user| Identity { user, version, read: Instant::now() });
    Ok(user)
}

/// Closes the cursors of the user if the user has lost a role while the command ran and the reply has an open cursor: the command may have opened
/// it after the change had closed the others.
///
/// # Errors
/// Fails if the storage fails.
pub(crate) async fn close_late_cursors(call: &Call<'_>, reply: &RawDocument) -> Result<()> {
    let Some(identity) = call.connection.login.identity() else { return Ok(()) };
    if identity.version != call.shared().users.version()
        && has_open_cursor(reply)
        && identity.has_lost_roles(identity.read_again(call).await?.as_deref())
    {
        call.shared().close_cursors_of(&identity.user);
    }
    Ok(())
}

/// `saslStart`: begins an exchange with the fields of `options`.
///
/// # Errors
/// Fails with `AuthenticationFailed` (18), without a reason unless the message is malformed, or with `MechanismUnavailable` (334).
pub(crate) async fn start(call: &Call<'_>, options: &RawDocument, database: &str) -> Result<RawDocumentBuf> {
    let (login, shared) = (&call.connection.login, call.shared());
    login.state().step = None;
    let name = options.get_str("mechanism").map_err(|_| Failure::mistyped("saslStart.mechanism", "string"))?;
    let mechanism = Mechanism::of_name(name).ok_or_else(|| {
        let message = format!("Received authentication for mechanism {name} which is unknown or not enabled");
        Failure::new(Code(334, "MechanismUnavailable"), message)
    })?;
    let payload = payload(options)?;
    let first = ClientFirst::parse(&payload).map_err(|reason| Failure::new(Code::AUTHENTICATION_FAILED, reason))?;
    let user = UserName::new(&*first.user, database);
    check_throttle(call, &user)?;
    let version = shared.users.version();
    // For an unknown user the exchange looks the same, and always fails.
    let known = shared.users.get(&user).await?;
    let credential = match &known {
        // Fails, so that a driver that has begun with another mechanism than the user's begins again.
        Some(known) => known.credential(mechanism).cloned().ok_or_else(failed)?,
        None => Credential::of_nobody(mechanism, &shared.secret, &user.key()),
    };
    let (exchange, sent) = Exchange::begin(mechanism, &first, credential).map_err(|_| failed())?;
    let skips_empty =
        options.get_document("options").is_ok_and(|options| options.get_bool("skipEmptyExchange").unwrap_or_default());
    let exchange = Box::new(exchange);
    login.state().step = Some(LoginStep::Proof { user, known, version, exchange, skips_empty });
    Ok(reply(false, sent.into_bytes()))
}

/// `saslContinue`: checks the client's next message of the exchange. After the last one the user is logged in.
///
/// # Errors
/// Fails with `AuthenticationFailed` (18), without a reason; with `ProtocolError` (17) without an exchange, or if another user has logged in.
pub(crate) fn proceed(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let (login, shared) = (&call.connection.login, call.shared());
    let none = || Failure::new(Code::PROTOCOL, "No SASL session state found");
    let step = login.state().step.take().ok_or_else(none)?;
    if call.integer("conversationId")? != Some(i64::from(CONVERSATION)) {
        return Err(Failure::new(Code::PROTOCOL, "sasl: Mismatched conversation id"));
    }
    let payload = payload(call.command.document())?;
    match step {
        LoginStep::Empty(identity) => {
            if !payload.is_empty() {
                return Err(failed());
            }
            login.enter(identity)?;
            Ok(reply(true, Vec::new()))
        }
        LoginStep::Proof { user, known, version, exchange, skips_empty } => {
            check_throttle(call, &user)?;
            let (Ok(verifier), Some(known)) = (exchange.finish(&payload), known) else {
                shared.throttle.failed(&call.connection.peer, &user);
                return Err(failed());
            };
            shared.throttle.succeeded(&call.connection.peer, &user);
            let identity = Identity { user: known, version, read: Instant::now() };
            if skips_empty {
                login.enter(identity)?;
            } else {
                login.state().step = Some(LoginStep::Empty(identity));
            }
            Ok(reply(skips_empty, verifier.into_bytes()))
        }
    }
}

/// `authenticate` with a client certificate, which the handshake of TLS has verified.
///
/// # Errors
/// Fails with `AuthenticationFailed` (18) without a certificate of the user, or if the user is unknown; with `BadValue` (2) for another mechanism.
pub(crate) async fn certificate(call: &Call<'_>, options: &RawDocument) -> Result<RawDocumentBuf> {
    let (login, shared) = (&call.connection.login, call.shared());
    if options.get_str("mechanism").is_ok_and(|mechanism| mechanism != "MONGODB-X509") {
        let message = "the command authenticate has the mechanism MONGODB-X509 only";
        return Err(Failure::new(Code::BAD_VALUE, message));
    }
    let Some(subject) = &call.connection.certificate else {
        let message = "No verified subject name available from client";
        return Err(Failure::new(Code::AUTHENTICATION_FAILED, message));
    };
    if options.get_str("user").is_ok_and(|user| user != &**subject) {
        let message = "There is no x.509 client certificate matching the user.";
        return Err(Failure::new(Code::AUTHENTICATION_FAILED, message));
    }
    let name = UserName::new(&**subject, UserName::EXTERNAL);
    let version = shared.users.version();
    let user = shared.users.get(&name).await?.filter(|user| user.is_external()).ok_or_else(failed)?;
    login.enter(Identity { user, version, read: Instant::now() })?;
    Ok(rawdoc! { "dbname": UserName::EXTERNAL, "user": &**subject })
}

/// Speculative authentication: the first login message, which a driver sends with `hello` to save a round trip. `None` if there is none, or if it
/// fails: the driver then begins again.
pub(crate) async fn speculative(call: &Call<'_>) -> Result<Option<RawDocumentBuf>> {
    let Some(RawBsonRef::Document(options)) = call.command.get("speculativeAuthenticate")? else { return Ok(None) };
    let database = options.get_str("db").unwrap_or("admin");
    let begins = |name: &str| options.into_iter().next().is_some_and(|first| first.is_ok_and(|(key, _)| key == name));
    let result = if begins("saslStart") {
        start(call, options, database).await
    } else if begins("authenticate") {
        certificate(call, options).await
    } else {
        return Ok(None);
    };
    Ok(result.ok())
}

/// Returns the mechanisms by which the user `db.name` may log in: all of them for an unknown user, to hide which users exist.
///
/// # Errors
/// Fails if the name has another form, or if the storage fails.
pub(crate) async fn mechanisms(call: &Call<'_>, full: &str) -> Result<Vec<Mechanism>> {
    let (database, name) =
        full.split_once('.').filter(|(database, name)| !database.is_empty() && !name.is_empty()).ok_or_else(|| {
            Failure::new(Code::BAD_VALUE, format!("UserName must contain a '.' separated database.user pair: {full}"))
        })?;
    let user = call.shared().users.get(&UserName::new(name, database)).await?;
    let has = |mechanism: &Mechanism| user.as_ref().is_none_or(|user| user.credential(*mechanism).is_some());
    Ok(Mechanism::ALL.into_iter().filter(has).collect())
}

fn check_throttle(call: &Call<'_>, user: &UserName) -> Result<()> {
    let Some(wait) = call.shared().throttle.wait(&call.connection.peer, user) else { return Ok(()) };
    let message = format!("Authentication failed too often: try again in {} seconds", wait.as_secs());
    Err(Failure::new(Code::AUTHENTICATION_FAILED, message))
}

fn failed() -> Failure {
    Failure::new(Code::AUTHENTICATION_FAILED, "Authentication failed.")
}

fn reply(done: bool, payload: Vec<u8>) -> RawDocumentBuf {
    let payload = Binary { subtype: BinarySubtype::Generic, bytes: payload };
    rawdoc! { "conversationId": CONVERSATION, "done": done, "payload": payload }
}

/// Returns the client's message, given as bytes or Base64.
fn payload(options: &RawDocument) -> Result<Vec<u8>> {
    match options.get("payload")? {
        Some(RawBsonRef::Binary(payload)) => Ok(payload.bytes.to_vec()),
        Some(RawBsonRef::String(payload)) => {
            BASE64_STANDARD.decode(payload).map_err(|_| Failure::new(Code::BAD_VALUE, "the payload is not Base64"))
        }
        _ => Err(Failure::mistyped("payload", "binData")),
    }
}
