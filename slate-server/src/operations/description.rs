//! Operations, connections, cursors and sessions as `currentOp` shows them.

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant, SystemTime},
};

use bson::{DateTime, RawArrayBuf, RawBsonRef, RawDocument, RawDocumentBuf, cstr, rawdoc};
use slate_core::OpenCursor;

use super::{Operation, Operations, Place, Whose};
use crate::{auth, command::beginning, session::SessionId};

/// What is described in addition to running commands.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Scope {
    /// Connections that wait for their next request.
    pub(crate) idle_connections: bool,
    /// Whether commands are truncated after [`MAX_TRUNCATED_COMMAND`] bytes instead of [`MAX_COMMAND`].
    pub(crate) truncates: bool,
}

/// Maximum length in bytes of a command that is shown as a whole: MongoDB's limit for the profiler. A longer one is truncated.
pub(crate) const MAX_COMMAND: usize = 50_000;

/// The limit in bytes if the client requests truncated commands (`truncateOps`).
const MAX_TRUNCATED_COMMAND: usize = 1000;

impl Operations {
    /// Describes the running commands of `whose`, and the idle connections if `scope` includes them, lazily.
    pub(crate) fn describe<'c>(
        &self,
        host: &str,
        whose: Whose<'_>,
        scope: Scope,
        find_cursor: impl Fn(i64) -> Option<&'c OpenCursor>,
    ) -> impl Iterator<Item = RawDocumentBuf> {
        let (mut running, mut idle) = (Vec::new(), Vec::new());
        // Copies the list, so that nothing is described under a lock that other commands need.
        let places: Vec<Arc<Place>> = self.places().open.values().map(Arc::clone).collect();
        for place in places {
            let operation = place.running().clone();
            match operation {
                Some(operation) if operation.is_of(whose) => running.push((operation, place)),
                None if scope.idle_connections => idle.push(place),
                _ => {}
            }
        }
        running.sort_unstable_by_key(|(operation, _)| operation.id);
        idle.sort_unstable_by_key(|place| place.connection);
        let running =
            running.into_iter().map(move |(operation, place)| operation.describe(&place, host, scope, &find_cursor));
        running.chain(idle.into_iter().map(|place| place.describe(host)))
    }
}

impl Place {
    /// Returns the fields that describe the client.
    fn begin(&self, host: &str) -> RawDocumentBuf {
        let mut described = rawdoc! {
            "type": "op",
            "host": host,
            "desc": format!("conn{}", self.connection),
            "connectionId": self.connection,
            "client": self.client.to_string(),
        };
        if let Some(application) = self.application.get() {
            if let Some(name) = &application.name {
                described.append(cstr!("appName"), &**name);
            }
            if let Some(metadata) = &application.metadata {
                described.append(cstr!("clientMetadata"), metadata.clone());
            }
        }
        described
    }

    /// Describes an idle connection.
    fn describe(&self, host: &str) -> RawDocumentBuf {
        let mut described = self.begin(host);
        described.append(cstr!("active"), false);
        described.append(cstr!("currentOpTime"), ago(self.since.elapsed()).try_to_rfc3339_string().unwrap_or_default());
        described
    }
}

impl Operation {
    fn describe<'c>(
        &self,
        place: &Place,
        host: &str,
        scope: Scope,
        find_cursor: impl Fn(i64) -> Option<&'c OpenCursor>,
    ) -> RawDocumentBuf {
        let command = &*self.command;
        let elapsed = self.since.elapsed();
        let micros = i64::try_from(elapsed.as_micros()).unwrap_or(i64::MAX);
        let mut described = place.begin(host);
        described.append(cstr!("active"), true);
        described.append(cstr!("currentOpTime"), ago(elapsed).try_to_rfc3339_string().unwrap_or_default());
        if let Some(user) = &self.user {
            described.append(cstr!("effectiveUsers"), RawArrayBuf::from_iter([user.name.document()]));
        }
        described.append(cstr!("opid"), self.id);
        let session = self.session();
        if let Some(session) = session {
            described.append(cstr!("lsid"), session.document());
        }
        if let (true, Some(number)) = (command.in_transaction, command.number) {
            described.append(cstr!("transaction"), transaction(number));
        }
        described.append(cstr!("secs_running"), micros / 1_000_000);
        described.append(cstr!("microsecs_running"), micros);
        described.append(cstr!("op"), kind(&command.name));
        described.append(cstr!("ns"), command.namespace());
        let most = if scope.truncates { MAX_TRUNCATED_COMMAND } else { MAX_COMMAND };
        described.append(cstr!("command"), shown(command.document(), most));
        if let Some(summary) = self.activity.plan_summary() {
            described.append(cstr!("planSummary"), summary);
            described.append(cstr!("keysExamined"), number(self.activity.keys_examined()));
            described.append(cstr!("docsExamined"), number(self.activity.documents_examined()));
        }
        let cursor = if command.name == "getMore" { command.get("getMore").ok().flatten() } else { None };
        if let Some(cursor) = cursor.and_then(|id| find_cursor(id.as_i64()?)) {
            described.append(cstr!("cursor"), describe_cursor(cursor, Some(self.id)));
        }
        described.append(cstr!("numYields"), 0);
        described.append(cstr!("waitingForLock"), false);
        described.append(cstr!("killPending"), self.token.is_cancelled());
        if let Some(progress) = &self.progress {
            let [done, total] = [&progress.done, &progress.total].map(|count| number(count.load(Ordering::Relaxed)));
            described.append(cstr!("msg"), format!("{}: {done}/{total}", command.name));
            described.append(cstr!("progress"), rawdoc! { "done": done, "total": total });
        }
        described
    }
}

/// Describes an idle cursor, between two batches.
pub(crate) fn idle_cursor(cursor: &OpenCursor, host: &str) -> RawDocumentBuf {
    let mut described = rawdoc! { "type": "idleCursor", "host": host, "ns": cursor.namespace() };
    if let Some(uuid) = cursor.session() {
        let owner = cursor.owner().and_then(|owner| owner.try_into().ok());
        described.append(cstr!("lsid"), SessionId::of(uuid, owner).document());
    }
    if let Some(summary) = cursor.plan_summary() {
        described.append(cstr!("planSummary"), summary);
    }
    described.append(cstr!("cursor"), describe_cursor(cursor, None));
    described
}

fn describe_cursor(cursor: &OpenCursor, operation: Option<i32>) -> RawDocumentBuf {
    let mut described = rawdoc! {
        "cursorId": cursor.id(),
        "createdDate": DateTime::from_system_time(cursor.created()),
        "lastAccessDate": DateTime::from_system_time(cursor.last_used()),
        "nDocsReturned": number(cursor.documents()),
        "nBatchesReturned": number(cursor.batches()),
        "noCursorTimeout": !cursor.times_out(),
        "tailable": cursor.is_of_changes(),
        "awaitData": cursor.is_of_changes(),
    };
    if let Some(command) = cursor.command() {
        described.append(cstr!("originatingCommand"), command.to_owned());
    }
    if let Some(operation) = operation {
        described.append(cstr!("operationUsingCursorId"), i64::from(operation));
    }
    described
}

/// Describes an idle transaction, between two commands.
pub(crate) fn idle_transaction(
    session: SessionId,
    transaction_number: i64,
    since: Instant,
    life: Duration,
    host: &str,
) -> RawDocumentBuf {
    let open = since.elapsed();
    let expires = DateTime::from_system_time(SystemTime::now() + life.saturating_sub(open));
    let mut within = transaction(transaction_number);
    within.append(cstr!("startWallClockTime"), ago(open).try_to_rfc3339_string().unwrap_or_default());
    within.append(cstr!("timeOpenMicros"), i64::try_from(open.as_micros()).unwrap_or(i64::MAX));
    within.append(cstr!("expiryTime"), expires.try_to_rfc3339_string().unwrap_or_default());
    rawdoc! {
        "type": "idleSession",
        "host": host,
        "desc": "inactive transaction",
        "active": false,
        "lsid": session.document(),
        "transaction": within,
    }
}

fn transaction(number: i64) -> RawDocumentBuf {
    rawdoc! { "parameters": { "txnNumber": number, "autocommit": false } }
}

/// Returns MongoDB's word for the kind of a command.
pub(crate) fn kind(command: &str) -> &'static str {
    match command {
        "find" => "query",
        "getMore" => "getmore",
        "insert" => "insert",
        "update" => "update",
        "delete" => "remove",
        _ => "command",
    }
}

/// Returns a command without its secrets. If it has more than `most` bytes, returns its first part as text, and its comment.
pub(crate) fn shown(document: &RawDocument, most: usize) -> RawDocumentBuf {
    if document.as_bytes().len() <= most {
        return auth::redacted(document);
    }
    let mut shown = rawdoc! { "$truncated": auth::shown(document) };
    if let Ok(Some(RawBsonRef::String(comment))) = document.get("comment") {
        shown.append(cstr!("comment"), beginning(comment, MAX_TRUNCATED_COMMAND));
    }
    shown
}

fn ago(time: Duration) -> DateTime {
    DateTime::from_system_time(SystemTime::now() - time)
}

pub(crate) fn number(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}
