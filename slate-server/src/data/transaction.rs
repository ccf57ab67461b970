use std::{mem, pin::pin, sync::Arc, time::Instant};

use bson::{RawBsonRef, RawDocumentBuf, cstr, rawdoc};
use slate_core::{ErrorKind, TransactionOptions, aio::RunningCommand};
use tokio::{sync::OwnedMutexGuard, time::timeout_at};

use super::{first_write_error, has_refused};
use crate::{
    command::Command,
    commands::{Call, Trait, has_open_cursor},
    failure::{Code, Failure, Result},
    labels::UNKNOWN_COMMIT,
    profiler::PROFILE,
    session::{OpenTransaction, Record, SessionId, SessionState, TransactionCursors, Work},
    shared::Shared,
    stages,
};

/// The levels that MongoDB allows in a transaction's read concern.
const LEVELS: [&str; 3] = ["local", "majority", "snapshot"];

/// Executes a command in a transaction, and begins it if the command says so. If the execution fails or a statement is refused, the transaction is
/// rolled back.
pub(super) async fn run(call: &Call<'_>, id: SessionId, number: i64) -> Result<RawDocumentBuf> {
    let shared = call.shared();
    check_command(call)?;
    check_new_indexes(call).await?;
    let session = shared.sessions.use_session(id)?;
    let mut state = call.unless_ended(session.state.lock()).await?;
    call.unless_ended(Record::load(shared, id, &mut state)).await??;
    if call.command.starts_transaction {
        begin(call, id, &mut state, number).await?;
    } else if call.command.read_concern.is_some() {
        let message = "Only the first command in a transaction may specify a readConcern";
        return Err(Failure::new(Code::INVALID_OPTIONS, message));
    }
    let open = open(id, &mut state, number)?;
    // An aggregation writes only with `$out` and `$merge`, which are refused in transactions.
    open.has_written |= call.command.is(Trait::Writes) && call.command.name != "aggregate";
    let result = run_within_life(call, open).await;
    open.cursors.are_open |= result.as_ref().is_ok_and(|reply| has_open_cursor(reply));
    if result.as_ref().map_or(true, |reply| has_refused(reply)) {
        roll_back(call, &mut state).await;
    }
    result
}

/// Executes a command in a transaction, until the transaction's lifetime is over. Between commands, the periodic sweep ends overdue transactions.
async fn run_within_life(call: &Call<'_>, open: &OpenTransaction) -> Result<RawDocumentBuf> {
    let token = call.token.child();
    let command = call.command.for_library()?;
    let mut run = pin!(open.commands.run_shared(&command, RunningCommand { token: &token, ..call.running() }));
    let end = open.since + call.shared().settings.transaction_life;
    if let Ok(ended) = timeout_at(end.into(), &mut run).await {
        return Ok(ended?);
    }
    token.cancel();
    run.await.map_err(|error| match error.kind() {
        ErrorKind::Interrupted if !call.token.is_cancelled() => {
            let over = Code(290, "TransactionExceededLifetimeLimitSeconds");
            Failure::new(over, "the transaction has lasted too long")
        }
        _ => error.into(),
    })
}

/// `commitTransaction`: also succeeds if the transaction is committed already.
pub(crate) async fn commit(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let (id, number) = identify(call)?;
    let session = call.shared().sessions.use_session(id)?;
    let mut state = call.unless_ended(Arc::clone(&session.state).lock_owned()).await?;
    call.unless_ended(Record::load(call.shared(), id, &mut state)).await??;
    let shared = Arc::clone(&call.connection.shared);
    let commit = async move { commit_number(&shared, id, number, state).await };
    match call.end() {
        None => commit.await?,
        Some(end) => {
            // The commit continues after the deadline. A repetition waits for it, because the commit holds the session's lock.
            let over = || Failure::new(Code::TIME_LIMIT, "operation exceeded time limit");
            let ended = timeout_at(end.into(), tokio::spawn(commit)).await.map_err(|_| over())?;
            ended.map_err(|_| Failure::new(Code::INTERRUPTED, "the commit was interrupted"))??;
        }
    }
    let mut reply = rawdoc! { "ok": 1.0 };
    if let Some(unsatisfied) = call.command.unsatisfied {
        reply.append(cstr!("writeConcernError"), unsatisfied.describe());
    }
    Ok(reply)
}

/// Commits the transaction of a session. The state stays locked until the commit has ended.
async fn commit_number(
    shared: &Shared,
    id: SessionId,
    number: i64,
    mut state: OwnedMutexGuard<SessionState>,
) -> Result<()> {
    if state.number < Some(number) {
        // A server in another process on the same store may have committed it.
        state.is_loaded = false;
        Record::load(shared, id, &mut state).await?;
    }
    if state.number == Some(number) && matches!(state.work, Work::Committed) {
        return Ok(());
    }
    let is_overdue = open(id, &mut state, number)?.since.elapsed() >= shared.settings.transaction_life;
    let Work::Open(open) = mem::replace(&mut state.work, Work::Aborted) else {
        return Err(none(number, state.number));
    };
    if is_overdue {
        // The reply is the same as after the sweep of overdue transactions.
        drop(open);
        return Err(aborted(number));
    }
    let OpenTransaction { transaction, commands, has_written, cursors, .. } = *open;
    drop(cursors);
    if has_written {
        let reply = commands.run(Record::of_commit(id, number)).await?;
        match first_write_error(&reply) {
            Some(failure) if failure.code == Record::EXISTS => {
                state.is_loaded = false;
                Record::load(shared, id, &mut state).await?;
                check_age(id, &state, number)?;
                let is_committed = state.number == Some(number) && matches!(state.work, Work::Committed);
                return if is_committed { Ok(()) } else { Err(none(number, state.number)) };
            }
            Some(failure) => return Err(failure),
            None => {}
        }
    }
    let committed = match transaction {
        Some(transaction) => transaction.commit().await,
        None => Ok(()),
    };
    match committed {
        Ok(()) => {
            state.work = Work::Committed;
            shared.database.next_time();
            Ok(())
        }
        Err(error) if error.kind() == ErrorKind::OutcomeUnknown => {
            // The outcome is unknown, so it is read from the record later.
            (state.is_loaded, state.number, state.work) = (false, None, Work::None);
            Err(Failure::from(error).with_label(UNKNOWN_COMMIT))
        }
        Err(error) => Err(error.into()),
    }
}

/// `abortTransaction`: rolls back, and fails without an open transaction.
pub(crate) async fn abort(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let shared = call.shared();
    let (id, number) = identify(call)?;
    let session = shared.sessions.use_session(id)?;
    let mut state = call.unless_ended(session.state.lock()).await?;
    call.unless_ended(Record::load(shared, id, &mut state)).await??;
    open(id, &mut state, number)?;
    roll_back(call, &mut state).await;
    Ok(rawdoc! { "ok": 1.0 })
}

/// The stages that MongoDB refuses in a transaction.
const OUTSIDE_TRANSACTIONS: [&str; 9] = [
    "$collStats",
    "$currentOp",
    "$indexStats",
    "$listLocalSessions",
    "$listSessions",
    "$merge",
    "$out",
    "$planCacheStats",
    "$unionWith",
];

/// Refuses commands and options that are not allowed in a transaction.
fn check_command(call: &Call<'_>) -> Result<()> {
    let command = call.command;
    if command.known.is_none() {
        return Err(Failure::new(Code::COMMAND_NOT_FOUND, format!("no such command: '{}'", command.name)));
    }
    if !command.is(Trait::Transaction) {
        let message = format!("Cannot run '{}' in a multi-document transaction.", command.name);
        return Err(Failure::new(Code::NOT_IN_TRANSACTION, message));
    }
    if matches!(command.database(), "admin" | "config" | "local")
        && !matches!(&*command.name, "bulkWrite" | "getMore" | "killCursors")
    {
        let message = format!("Cannot run command against the '{}' database in a transaction.", command.database());
        return Err(Failure::new(Code::NOT_IN_TRANSACTION, message));
    }
    if command.collection() == Some(PROFILE) {
        let message =
            format!("Cannot run command against the '{}.{PROFILE}' collection in a transaction.", command.database());
        return Err(Failure::new(Code::NOT_IN_TRANSACTION, message));
    }
    check_first(command)?;
    if command.has_write_concern {
        let message = "writeConcern is not allowed within a multi-statement transaction";
        return Err(Failure::new(Code::INVALID_OPTIONS, message));
    }
    if command.name == "aggregate"
        && let Some(pipeline) = command.get("pipeline")?.and_then(RawBsonRef::as_array)
    {
        stages::visit(pipeline, &mut |name, _| {
            if !OUTSIDE_TRANSACTIONS.contains(&name) {
                return Ok(());
            }
            let message = format!("Stage not supported inside of a multi-document transaction: {name}");
            Err(Failure::new(Code::NOT_IN_TRANSACTION, message))
        })?;
    }
    if command.name == "find" && command.get("readOnce")?.is_some_and(|value| value.as_bool() == Some(true)) {
        return Err(Failure::new(
            Code::NOT_IN_TRANSACTION,
            "The 'readOnce' option is not supported within a transaction.",
        ));
    }
    let level = command.read_concern.as_ref().and_then(|concern| concern.level.as_deref());
    if let Some(level) = level.filter(|level| !LEVELS.contains(level)) {
        let message = format!("The readConcern level '{level}' is not supported in a transaction");
        return Err(Failure::new(Code::INVALID_OPTIONS, message));
    }
    Ok(())
}

/// Refuses commands with which a transaction cannot begin.
fn check_first(command: &Command) -> Result<()> {
    let what = match &*command.name {
        "killCursors" => "Cannot run killCursors as the first operation in a multi-document transaction.",
        "commitTransaction" => "Cannot start a transaction with a commit",
        "abortTransaction" => "Cannot start a transaction with an abort",
        _ => return Ok(()),
    };
    if command.starts_transaction { Err(Failure::new(Code::NOT_IN_TRANSACTION, what)) } else { Ok(()) }
}

/// The failure of a command with a transaction number that is neither in a transaction nor a retryable write.
pub(super) fn not_retryable(command: &Command) -> Failure {
    let message = "txnNumber may only be provided for multi-document transactions and retryable write commands. \
                   autocommit:false was not provided, and '{}' is not a retryable write command.";
    Failure::new(Code::NOT_RETRYABLE, message.replace("{}", &command.name))
}

/// Refuses new indexes on a collection that the transaction has not created.
async fn check_new_indexes(call: &Call<'_>) -> Result<()> {
    let command = call.command;
    let Some(collection) = command.get("createIndexes")?.and_then(RawBsonRef::as_str) else { return Ok(()) };
    let list = rawdoc! { "listIndexes": collection, "$db": command.database() };
    let Ok(reply) = call.shared().commands.run(list).await else { return Ok(()) };
    let there = reply.get_document("cursor")?.get_array("firstBatch")?;
    let has = |name: &str| {
        there
            .into_iter()
            .flatten()
            .filter_map(RawBsonRef::as_document)
            .any(|index| index.get_str("name").is_ok_and(|own| own == name))
    };
    let wanted = command.get("indexes")?.and_then(RawBsonRef::as_array);
    let mut wanted = wanted.into_iter().flatten().flatten().filter_map(RawBsonRef::as_document);
    if wanted.all(|index| index.get_str("name").is_ok_and(has)) {
        return Ok(());
    }
    let message = format!(
        "Cannot create new indexes on existing collection {}.{collection} in a multi-document transaction.",
        command.database()
    );
    Err(Failure::new(Code::NOT_IN_TRANSACTION, message))
}

async fn begin(call: &Call<'_>, id: SessionId, state: &mut SessionState, number: i64) -> Result<()> {
    let shared = call.shared();
    check_age(id, state, number)?;
    if state.number == Some(number) {
        // Clients recognize MongoDB's message.
        let message = "Only servers in a sharded cluster can start a new transaction at the active transaction number";
        return Err(Failure::new(Code::CONFLICTING, message));
    }
    if call.command.read_concern.as_ref().is_some_and(|concern| concern.at.is_some()) {
        let message = "a transaction begins with the latest commit, and not at an atClusterTime";
        return Err(Failure::new(Code::INVALID_OPTIONS, message));
    }
    roll_back(call, state).await;
    state.number = Some(number);
    state.work = Work::Aborted;
    let place = shared.transactions.take(call.owner().map(Into::into))?;
    let (transaction, commands) = if shared.settings.read_only {
        let snapshot = call.unless_ended(shared.database.snapshot()).await??;
        (None, call.commands().at_snapshot(&snapshot))
    } else {
        let options = TransactionOptions::new().detached();
        let transaction = call.unless_ended(shared.database.begin_with(&options)).await??;
        let commands = call.commands().in_transaction(&transaction);
        (Some(transaction), commands)
    };
    let cursors = TransactionCursors { commands: call.commands().into_owned(), session: id, number, are_open: false };
    let open =
        OpenTransaction { transaction, commands, since: Instant::now(), has_written: false, cursors, _place: place };
    state.work = Work::Open(Box::new(open));
    Ok(())
}

/// Returns the open transaction with this number.
///
/// # Errors
/// Fails as in MongoDB if the session has no open transaction with this number.
fn open(id: SessionId, state: &mut SessionState, number: i64) -> Result<&mut OpenTransaction> {
    check_age(id, state, number)?;
    let active = state.number;
    match &mut state.work {
        _ if active != Some(number) => Err(none(number, active)),
        Work::Open(open) => Ok(open),
        Work::Committed => Err(Failure::new(
            Code::TRANSACTION_COMMITTED,
            format!("Transaction with {{ txnNumber: {number} }} has been committed."),
        )),
        Work::Aborted => Err(aborted(number)),
        Work::None | Work::Wrote(_) | Work::Recorded => Err(none(number, active)),
    }
}

fn aborted(number: i64) -> Failure {
    let message = format!("Transaction with {{ txnNumber: {number} }} has been aborted.");
    Failure::new(Code::NO_SUCH_TRANSACTION, message)
}

fn none(number: i64, active: Option<i64>) -> Failure {
    let active = active.unwrap_or(-1);
    let message = format!(
        "Given transaction number {number} does not match any in-progress transactions. The active transaction number is {active}"
    );
    Failure::new(Code::NO_SUCH_TRANSACTION, message)
}

/// Refuses a negative number, and one below the session's.
pub(super) fn check_age(id: SessionId, state: &SessionState, number: i64) -> Result<()> {
    match state.number {
        _ if number < 0 => Err(Failure::new(Code::INVALID_OPTIONS, "Transaction number cannot be negative")),
        Some(latest) if number < latest => {
            let message = format!(
                "Cannot start transaction with {{ txnNumber: {number} }} on session {id} because a newer transaction with txnNumber \
                 {latest} has already started on this session."
            );
            Err(Failure::new(Code::TRANSACTION_TOO_OLD, message))
        }
        _ => Ok(()),
    }
}

async fn roll_back(call: &Call<'_>, state: &mut SessionState) {
    if let Work::Open(open) = mem::replace(&mut state.work, Work::Aborted) {
        // A command whose time is over does not wait for the rollback.
        let _ = call.unless_ended(open.roll_back()).await;
    }
}

fn identify(call: &Call<'_>) -> Result<(SessionId, i64)> {
    let command = call.command;
    let refused = |message: &str| Failure::new(Code::INVALID_OPTIONS, message);
    let lsid = command.session().ok_or_else(|| refused("the command must be run within a session"))?;
    let number = command.number.ok_or_else(|| refused("the command must be run within a transaction"))?;
    if !command.in_transaction {
        return Err(not_retryable(command));
    }
    check_first(command)?;
    Ok((SessionId::read(lsid, call.owner())?, number))
}
