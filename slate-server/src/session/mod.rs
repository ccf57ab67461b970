//! Logical sessions: transactions, records of retryable writes, snapshots.
//!
//! ```text
//!              startTransaction               commitTransaction
//!   ─────────▶ Open ──────────────────────────▶ Committed
//!               │ error, abortTransaction, 60 s
//!               └─────────────────────────────▶ Aborted
//!   retryable write ──▶ Wrote (the record of its statements)
//! ```
//!
//! Each state belongs to a transaction number, which grows. The record of a retryable write or of a committed transaction is a document of the
//! collection `config.transactions`, written in the same transaction as the data. So a client that repeats the command after a crash receives the
//! same answer.

mod id;
mod record;
mod table;

use std::time::Instant;

use bson::{RawDocumentBuf, Timestamp};
use slate_core::{QuotaPlace, aio};

pub(crate) use id::SessionId;
pub(crate) use record::Record;
pub(crate) use table::{MAX_SESSIONS, Sessions};

/// The state of a session between its commands.
#[derive(Default)]
pub(crate) struct SessionState {
    /// Whether the record of the session was read from the database.
    pub(crate) is_loaded: bool,
    /// The highest transaction number; `None` before the first one.
    pub(crate) number: Option<i64>,
    pub(crate) work: Work,
    pub(crate) snapshot: Option<SessionSnapshot>,
}

/// The snapshot shared by reads with the level `snapshot`.
pub(crate) struct SessionSnapshot {
    pub(crate) time: Timestamp,
    pub(crate) snapshot: aio::Snapshot,
    pub(crate) since: Instant,
    pub(crate) _place: QuotaPlace,
}

/// The outcome of the latest transaction number.
#[derive(Default)]
pub(crate) enum Work {
    #[default]
    None,
    /// Retryable writes: the record of their statements.
    Wrote(RawDocumentBuf),
    /// Retryable writes whose record is only in the database, because it is long.
    Recorded,
    Open(Box<OpenTransaction>),
    Committed,
    Aborted,
}

/// The open transaction of a session.
pub(crate) struct OpenTransaction {
    /// `None` on a read-only server, where the commands read one snapshot and nothing is committed.
    pub(crate) transaction: Option<aio::Transaction>,
    pub(crate) commands: aio::Commands,
    pub(crate) since: Instant,
    /// Whether the commit needs a record.
    pub(crate) has_written: bool,
    pub(crate) cursors: TransactionCursors,
    pub(crate) _place: QuotaPlace,
}

/// The cursors that a transaction has opened. Dropping this closes them.
pub(crate) struct TransactionCursors {
    pub(crate) commands: aio::Commands,
    pub(crate) session: SessionId,
    pub(crate) number: i64,
    /// Whether there are open cursors.
    pub(crate) are_open: bool,
}

impl OpenTransaction {
    /// Rolls the transaction back and waits for the end of that. Dropping it instead does not wait.
    pub(crate) async fn roll_back(self) {
        if let Some(transaction) = self.transaction {
            let _ = transaction.rollback().await;
        }
    }
}

impl Drop for TransactionCursors {
    fn drop(&mut self) {
        if self.are_open {
            self.commands.as_blocking().close_transaction_cursors(&self.session.document(), self.number);
        }
    }
}
