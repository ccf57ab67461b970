use std::time::{Duration, Instant};

use bson::RawDocumentBuf;
use slate_core::TransactionOptions;
use tokio::time::sleep;

use super::{first_write_error, transaction};
use crate::{
    commands::Call,
    failure::{Code, Failure, Result},
    session::{Record, SessionId, Work},
};

/// How long a write is repeated after conflicts, as by the library.
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest pause before a repetition.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// Executes a write that the client repeats with the same number if it hears nothing. Its record is committed together with it, and a
/// repetition returns the recorded reply.
pub(super) async fn run(call: &Call<'_>, id: SessionId, number: i64) -> Result<RawDocumentBuf> {
    let shared = call.shared();
    let session = shared.sessions.use_session(id)?;
    let mut state = session.state.lock().await;
    if shared.settings.read_only {
        return Ok(call.commands().run(call.command.for_library()?).await?);
    }
    Record::load(shared, id, &mut state).await?;
    transaction::check_age(id, &state, number)?;
    if state.number == Some(number) {
        return match &state.work {
            Work::Wrote(reply) => Ok(reply.clone()),
            Work::None => Err(unknown(number)),
            Work::Open(_) | Work::Committed | Work::Aborted => {
                let message =
                    format!("the transaction number {number} belongs to a transaction, not to a retryable write");
                Err(Failure::new(Code(117, "ConflictingOperationInProgress"), message))
            }
        };
    }
    // A new number ends what the session had open.
    state.number = Some(number);
    state.work = Work::Aborted;
    let (began, mut pause) = (Instant::now(), Duration::from_micros(50));
    loop {
        match attempt(call, id, number).await {
            Err(failure) if failure.is_conflict() && began.elapsed() < PATIENCE && !call.token.is_cancelled() => {
                sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            Ok(reply) => {
                state.work = Work::Wrote(reply.clone());
                return Ok(reply);
            }
            Err(failure) => {
                // Nothing was written: the same number may be sent again. If that is not known, the record says it.
                state.is_loaded = false;
                state.number = None;
                state.work = Work::None;
                return Err(failure);
            }
        }
    }
}

async fn attempt(call: &Call<'_>, id: SessionId, number: i64) -> Result<RawDocumentBuf> {
    let shared = call.shared();
    let options = TransactionOptions::new().detached();
    let transaction = shared.database.begin_with(&options).await?;
    let within = call.commands().in_transaction(&transaction);
    let reply = within.with_cancel(call.token.clone()).run(call.command.for_library()?).await?;
    if let Some(conflict) = first_write_error(&reply).filter(Failure::is_conflict) {
        return Err(conflict);
    }
    Record::write(&within, id, number, &reply).await?;
    shared.fail_points.on_write(call)?;
    transaction.commit().await?;
    Ok(reply)
}

fn unknown(number: i64) -> Failure {
    Failure::new(Code::TRANSACTION_TOO_OLD, format!("the write {number} of this session is no longer known"))
}
