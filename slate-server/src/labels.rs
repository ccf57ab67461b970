//! Error labels, by which drivers decide what to retry.

use bson::{RawArrayBuf, RawDocumentBuf, cstr};

use crate::{
    command::Command,
    failure::{Code, Failure},
};

/// The label of errors after which a driver retries the whole transaction.
const TRANSIENT: &str = "TransientTransactionError";

/// The label of errors after which a driver retries a write, a commit or an abort.
const RETRYABLE_WRITE: &str = "RetryableWriteError";

/// The label of a commit with an unknown outcome.
pub(crate) const UNKNOWN_COMMIT: &str = "UnknownTransactionCommitResult";

/// The labels of errors after which a driver resumes a change stream, and after which it does not.
const RESUMABLE: &str = "ResumableChangeStreamError";
const NOT_RESUMABLE: &str = "NonResumableChangeStreamError";

/// Codes that are transient for a change stream, in addition to those that are transient for every command.
const PASSING_FOR_STREAMS: [i32; 5] = [63, 133, 150, 234, 13388];

/// Failures that end a change stream: `ChangeStreamFatalError` and `ChangeStreamHistoryLost`.
const FATAL_FOR_STREAMS: [i32; 2] = [280, 286];

/// Transient errors: MongoDB's category `RetriableError`.
const PASSING: [Code; 13] = [
    Code(6, "HostUnreachable"),
    Code(7, "HostNotFound"),
    Code(89, "NetworkTimeout"),
    Code(91, "ShutdownInProgress"),
    Code(134, "ReadConcernMajorityNotAvailableYet"),
    Code(189, "PrimarySteppedDown"),
    Code(262, "ExceededTimeLimit"),
    Code(9001, "SocketException"),
    Code(10107, "NotWritablePrimary"),
    Code(11600, "InterruptedAtShutdown"),
    Code(11602, "InterruptedDueToReplStateChange"),
    Code(13435, "NotPrimaryNoSecondaryOk"),
    Code(13436, "NotPrimaryOrSecondary"),
];

/// Codes of a transaction that conflicted with another one, or whose snapshot is gone.
const LOST: [i32; 6] = [24, Code::WRITE_CONFLICT.0, Code::SNAPSHOT_TOO_OLD.0, 246, Code::NO_SUCH_TRANSACTION.0, 267];

/// Returns the name of a transient error; `None` for other codes.
pub(crate) fn name_of(code: i32) -> Option<&'static str> {
    PASSING.iter().find(|known| known.0 == code).map(|known| known.1)
}

/// Adds the labels that MongoDB gives to the failure of this command.
pub(crate) fn add(command: &Command, failure: Failure) -> Failure {
    let passes = name_of(failure.code).is_some();
    let is_transient =
        command.in_transaction && (LOST.contains(&failure.code) || (passes && !ends_transaction(command)));
    let failure = if is_transient { failure.with_label(TRANSIENT) } else { failure };
    if passes && is_repeated(command) { failure.with_label(RETRYABLE_WRITE) } else { failure }
}

/// Adds the labels of a change stream. `is_of_stream` returns whether the command belongs to one.
pub(crate) fn add_of_stream(failure: Failure, is_of_stream: impl FnOnce() -> bool) -> Failure {
    if FATAL_FOR_STREAMS.contains(&failure.code) {
        return failure.with_label(NOT_RESUMABLE);
    }
    let passes = name_of(failure.code).is_some() || PASSING_FOR_STREAMS.contains(&failure.code);
    if passes && is_of_stream() { failure.with_label(RESUMABLE) } else { failure }
}

/// Appends the retry label to the reply of a write that was made, but whose write concern failed with a transient error.
pub(crate) fn add_to_reply(command: &Command, code: i32, reply: &mut RawDocumentBuf) {
    if name_of(code).is_some() && is_repeated(command) {
        let labels: RawArrayBuf = [RETRYABLE_WRITE].into_iter().collect();
        reply.append(cstr!("errorLabels"), labels);
    }
}

/// Whether drivers retry this command.
fn is_repeated(command: &Command) -> bool {
    ends_transaction(command) || (command.number.is_some() && !command.in_transaction)
}

fn ends_transaction(command: &Command) -> bool {
    matches!(&*command.name, "abortTransaction" | "commitTransaction")
}
