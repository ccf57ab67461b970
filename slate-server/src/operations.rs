use std::{
    collections::BTreeMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI32, Ordering},
    },
    time::Instant,
};

use bson::{DateTime, RawArrayBuf, RawDocumentBuf, cstr, rawdoc};
use slate_core::CancelToken;

use crate::{auth::UserName, command::Command, connection::Connection, session::SessionId};

/// A command of more bytes is shown without its content.
const SHOWN_BYTES: usize = 1000;

/// The commands that run, for `currentOp`, `killOp` and `killSessions`.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    last: AtomicI32,
    running: Mutex<BTreeMap<i32, Operation>>,
}

#[derive(Debug)]
struct Operation {
    token: CancelToken,
    session: Option<SessionId>,
    since: Instant,
    began: DateTime,
    client: String,
    connection: i64,
    user: Option<UserName>,
    name: String,
    namespace: String,
    command: RawDocumentBuf,
}

/// Ends the entry of a command when it is dropped.
pub(crate) struct Running<'o> {
    operations: &'o Operations,
    id: i32,
}

impl Operations {
    pub(crate) fn begin(
        &self,
        command: &Command,
        session: Option<SessionId>,
        token: &CancelToken,
        connection: &Connection,
    ) -> Running<'_> {
        let id = self.last.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let target = command.get(&command.name).ok().flatten().and_then(|target| target.as_str()).unwrap_or("$cmd");
        let document = command.document();
        let shown = if holds_secrets(&command.name) {
            rawdoc! { "$truncated": &*command.name }
        } else if document.as_bytes().len() <= SHOWN_BYTES {
            document.to_owned()
        } else {
            rawdoc! { "$truncated": format!("{} of {} bytes", command.name, document.as_bytes().len()) }
        };
        let operation = Operation {
            token: token.clone(),
            session,
            since: Instant::now(),
            began: DateTime::now(),
            client: connection.peer.to_string(),
            connection: connection.id,
            user: connection.login.user().map(|user| user.name.clone()),
            name: command.name.clone(),
            namespace: format!("{}.{target}", command.database),
            command: shown,
        };
        self.running().insert(id, operation);
        Running { operations: self, id }
    }

    /// Cancels a command, if it still runs. Returns false if it does and is not one of the user.
    pub(crate) fn kill(&self, id: i32, user: Option<&UserName>) -> bool {
        let running = self.running();
        let Some(operation) = running.get(&id) else { return true };
        let is_allowed = operation.is_of(user);
        if is_allowed {
            operation.token.cancel();
        }
        is_allowed
    }

    /// Cancels the commands of a session.
    pub(crate) fn kill_session(&self, session: &SessionId) {
        let running = self.running();
        running
            .values()
            .filter(|running| running.session.as_ref() == Some(session))
            .for_each(|running| running.token.cancel());
    }

    /// Cancels every command.
    pub(crate) fn kill_all(&self) {
        self.running().values().for_each(|operation| operation.token.cancel());
    }

    /// Returns a description of every command that runs, or of those of a user.
    pub(crate) fn describe(&self, host: &str, user: Option<&UserName>) -> RawArrayBuf {
        let running = self.running();
        let of_user = running.iter().filter(|(_, operation)| operation.is_of(user));
        of_user.map(|(id, operation)| operation.describe(*id, host)).collect()
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<i32, Operation>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a command contains a password or the messages of a login.
fn holds_secrets(command: &str) -> bool {
    matches!(command, "createUser" | "updateUser" | "saslStart" | "saslContinue")
}

impl Operation {
    /// Whether it is one of the user; every one is, if no user is given.
    fn is_of(&self, user: Option<&UserName>) -> bool {
        user.is_none() || self.user.as_ref() == user
    }

    fn describe(&self, id: i32, host: &str) -> RawDocumentBuf {
        let micros = i64::try_from(self.since.elapsed().as_micros()).unwrap_or(i64::MAX);
        let kind = match &*self.name {
            "find" => "query",
            "getMore" => "getmore",
            "insert" => "insert",
            "update" => "update",
            "delete" => "remove",
            _ => "command",
        };
        let mut described = rawdoc! {
            "type": "op",
            "host": host,
            "desc": format!("conn{}", self.connection),
            "connectionId": self.connection,
            "client": &*self.client,
            "active": true,
            "currentOpTime": self.began.try_to_rfc3339_string().unwrap_or_default(),
            "opid": id,
            "secs_running": micros / 1_000_000,
            "microsecs_running": micros,
            "op": kind,
            "ns": &*self.namespace,
            "command": self.command.clone(),
            "killPending": self.token.is_cancelled(),
        };
        if let Some(user) = &self.user {
            described.append(cstr!("effectiveUsers"), RawArrayBuf::from_iter([user.document()]));
        }
        if let Some(session) = &self.session {
            described.append(cstr!("lsid"), session.document());
        }
        described
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.operations.running().remove(&self.id);
    }
}
