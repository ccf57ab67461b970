//! Maps the errors of TiKV's client; the only place that does so.

use tikv_client::{Error as ClientError, ProtoKeyError, ProtoRegionError};

use super::layout::Layout;
use crate::{Context, Error};

/// Whether another attempt of a failed read can succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadFailure {
    /// Another attempt at the same timestamp can succeed: a region moved, a node is unreachable, or a key was locked.
    Transient,
    /// The answer exceeded the maximum length of a message. A smaller request can succeed.
    TooLong,
    Lasting,
}

/// Visits the errors that a combined error consists of.
fn leaves<'e>(error: &'e ClientError, visit: &mut dyn FnMut(&'e ClientError)) {
    match error {
        ClientError::ExtractedErrors(errors) | ClientError::MultipleKeyErrors(errors) => {
            errors.iter().for_each(|error| leaves(error, visit));
        }
        ClientError::PessimisticLockError { inner, .. } => leaves(inner, visit),
        other => visit(other),
    }
}

fn all(error: &ClientError) -> Vec<&ClientError> {
    let mut found = Vec::new();
    leaves(error, &mut |error| found.push(error));
    found
}

/// Classifies the error of a read.
pub(super) fn of_read(error: &ClientError) -> ReadFailure {
    let is_too_long = |error: &&ClientError| match error {
        ClientError::GrpcAPI(status) => status.message().contains("message length too large"),
        _ => false,
    };
    let is_transient = |error: &&ClientError| match error {
        ClientError::KeyError(error) => {
            error.locked.is_some() || error.txn_not_found.is_some() || !error.retryable.is_empty()
        }
        ClientError::Grpc(_)
        | ClientError::GrpcAPI(_)
        | ClientError::RegionError(_)
        | ClientError::ResolveLockError(_)
        | ClientError::TxnNotFound(_)
        | ClientError::LeaderNotFound { .. }
        | ClientError::RegionForKeyNotFound { .. }
        | ClientError::RegionForRangeNotFound { .. }
        | ClientError::RegionNotFoundInResponse { .. }
        | ClientError::EntryNotFoundInRegionCache
        | ClientError::NoCurrentRegions
        | ClientError::Io(_)
        | ClientError::Channel(_)
        | ClientError::Canceled(_)
        | ClientError::KvError { .. }
        | ClientError::InternalError { .. } => true,
        _ => false,
    };
    let leaves = all(error);
    if leaves.iter().any(is_too_long) {
        ReadFailure::TooLong
    } else if leaves.iter().any(is_transient) {
        ReadFailure::Transient
    } else {
        ReadFailure::Lasting
    }
}

/// Returns whether a node requests a repetition of a commit because it became the leader a short time ago. Nodes do so only for writes that would
/// commit in one phase, and have written nothing.
pub(super) fn is_not_ready(error: &ClientError) -> bool {
    is_region_error(error, |error| error.max_timestamp_not_synced.is_some())
}

/// Returns whether a node failed at a part of a commit, in either phase, that it may have written all the same.
pub(super) fn is_undecided(error: &ClientError) -> bool {
    is_busy(error) || is_aborted(error)
}

fn is_busy(error: &ClientError) -> bool {
    is_region_error(error, |error| error.server_is_busy.is_some())
}

/// Returns whether a node reports a failure without a field of its own in the protocol. Such failures include those of its engine, and a write that
/// was not confirmed in time, which can still be made.
fn is_aborted(error: &ClientError) -> bool {
    all(error).iter().any(|error| matches!(error, ClientError::KeyError(error) if !error.abort.is_empty()))
}

fn is_region_error(error: &ClientError, is: impl Fn(&ProtoRegionError) -> bool) -> bool {
    all(error).iter().any(|error| matches!(error, ClientError::RegionError(error) if is(error)))
}

/// Returns whether a node has no record of a transaction at the requested key: no lock, no commit and no rollback.
pub(super) fn is_unwritten(error: &ClientError) -> bool {
    all(error).iter().any(|error| matches!(error, ClientError::KeyError(error) if error.txn_not_found.is_some()))
}

/// Returns the commit timestamp of the transaction that began at `began`, if its commit conflicted with itself.
pub(super) fn own_commit(error: &ClientError, began: u64) -> Option<u64> {
    all(error).into_iter().find_map(|error| match error {
        ClientError::KeyError(error) => {
            let conflict = error.conflict.as_ref()?;
            // The record of a rollback has the timestamp at which the transaction began.
            let is_own = conflict.conflict_ts == began && conflict.conflict_commit_ts > began;
            is_own.then_some(conflict.conflict_commit_ts)
        }
        _ => None,
    })
}

/// How a commit failed.
#[derive(Debug)]
pub(super) struct CommitFailure {
    pub(super) error: Error,
    /// Whether the commit certainly failed, so that its locks may be removed.
    pub(super) is_certain: bool,
    /// The stored key over which transactions conflict, and the timestamp of the other commit.
    pub(super) conflict: Option<(Vec<u8>, u64)>,
}

/// Maps the error of a commit.
///
/// A refusal by the cluster is certain. After any other error the commit may have been made: the outcome is unknown.
pub(super) fn of_commit(error: ClientError, layout: &Layout) -> CommitFailure {
    let found = all(&error);
    let key_error = |is: &dyn Fn(&ProtoKeyError) -> bool| {
        found.iter().find_map(|error| match error {
            ClientError::KeyError(error) if is(error) => Some(&**error),
            _ => None,
        })
    };
    let is_undetermined = found.iter().any(|error| matches!(error, ClientError::UndeterminedError(_)));
    if !is_undetermined && !is_undecided(&error) {
        let conflict = key_error(&|error| error.conflict.is_some()).and_then(|error| error.conflict.clone());
        if let Some(conflict) = conflict {
            let mut context = Context::new("another transaction first committed a change to the same key");
            if let Some((keyspace, key)) = layout.read(&conflict.key) {
                context = context.on(keyspace, key);
            }
            let error = Error::Conflict(Box::new(context.because(error)));
            let conflict = Some((conflict.key, conflict.conflict_commit_ts));
            return CommitFailure { error, is_certain: true, conflict };
        }
        let is_locked = found.iter().any(|error| matches!(error, ClientError::ResolveLockError(_)))
            || key_error(&|error| error.locked.is_some()).is_some();
        let is_rolled_back = key_error(&|error| {
            error.txn_not_found.is_some()
                || error.commit_ts_expired.is_some()
                || error.deadlock.is_some()
                || !error.retryable.is_empty()
        })
        .is_some();
        let is_refused = found.iter().any(|error| matches!(error, ClientError::OnePcFailure));
        let detail = match (is_locked, is_rolled_back) {
            _ if is_refused => Some("the cluster does not commit in one phase"),
            (true, _) => Some("another transaction has locked a key for too long"),
            (_, true) => Some("its locks were removed, because it took too long"),
            _ => None,
        };
        if let Some(detail) = detail {
            let error = Error::Conflict(Box::new(Context::new(detail).because(error)));
            return CommitFailure { error, is_certain: true, conflict: None };
        }
    }
    let context = Context::new("the cluster did not answer while the transaction was committing").because(error);
    CommitFailure { error: Error::OutcomeUnknown(Box::new(context)), is_certain: false, conflict: None }
}

/// Maps an [undecided](is_undecided) error of a commit that was settled.
pub(super) fn of_settled(error: ClientError) -> CommitFailure {
    let detail = match is_busy(&error) {
        true => "the nodes were too busy for the commit",
        false => "a node did not confirm its part of the commit",
    };
    let error = Error::Conflict(Box::new(Context::new(detail).because(error)));
    CommitFailure { error, is_certain: true, conflict: None }
}

/// Returns the error of a commit whose task has ended without an answer.
pub(super) fn lost_commit(cause: Error) -> Error {
    Error::OutcomeUnknown(Box::new(Context::new("a commit ended without an answer").because(cause)))
}

/// Returns the error of a refused commit whose locks could not be removed. It is not retryable: the refusal may answer a repeated request, whose
/// first attempt had succeeded.
pub(super) fn not_undone(refused: Error, cause: Error) -> Error {
    let context = format!("{refused}; the cluster did not confirm that the transaction was undone");
    Error::OutcomeUnknown(Box::new(Context::new(context).because(cause)))
}

/// Returns the error of a request whose task has ended without an answer.
pub(super) fn unanswered(cause: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Io(Box::new(Context::new("a request ended without an answer").because(cause)))
}

/// Maps the error of a request that was not a commit, after the last attempt.
pub(super) fn of_request(error: ClientError, what: &'static str) -> Error {
    Error::Io(Box::new(Context::new(what).because(error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Keyspace;

    fn key_error(change: impl FnOnce(&mut ProtoKeyError)) -> ClientError {
        let mut error = ProtoKeyError::default();
        change(&mut error);
        ClientError::MultipleKeyErrors(vec![ClientError::KeyError(Box::new(error))])
    }

    #[test]
    fn refusals_of_a_commit_are_conflicts_and_everything_else_is_an_unknown_outcome() {
        let layout = Layout::of("shop");
        let refused = key_error(|error| {
            let conflict = error.conflict.get_or_insert_default();
            (conflict.key, conflict.conflict_commit_ts) = (layout.entry(Keyspace(7), b"k"), 42);
        });
        let refused = of_commit(ClientError::ExtractedErrors(vec![refused]), &layout);
        assert!(refused.is_certain && refused.error.is_retryable());
        assert_eq!(refused.error.key(), Some((Keyspace(7), &b"k"[..])));
        assert_eq!(refused.conflict, Some((layout.entry(Keyspace(7), b"k"), 42)));
        let removed = of_commit(key_error(|error| error.retryable = "TxnLockNotFound".into()), &layout);
        assert!(removed.is_certain && removed.error.is_retryable());
        let locked = of_commit(ClientError::ResolveLockError(Vec::new()), &layout);
        assert!(locked.is_certain && locked.error.is_retryable());
        let region = || ClientError::RegionError(Box::default());
        for error in
            [region(), ClientError::UndeterminedError(Box::new(region())), ClientError::StringError("?".into())]
        {
            let unknown = of_commit(error, &layout);
            assert!(
                !unknown.is_certain
                    && matches!(unknown.error, Error::OutcomeUnknown(_))
                    && !unknown.error.is_retryable()
            );
        }
    }

    #[test]
    fn a_commit_that_conflicts_with_itself_was_made() {
        let conflict = |began, at| {
            let error = key_error(|error| {
                let conflict = error.conflict.get_or_insert_default();
                (conflict.start_ts, conflict.conflict_ts, conflict.conflict_commit_ts) = (7, began, at);
            });
            own_commit(&ClientError::ExtractedErrors(vec![error]), 7)
        };
        assert_eq!(conflict(7, 9), Some(9));
        assert_eq!(conflict(7, 7), None, "it was rolled back");
        assert_eq!(conflict(8, 9), None, "of another transaction");
        assert_eq!(own_commit(&ClientError::OnePcFailure, 7), None);
    }

    #[test]
    fn a_commit_is_sent_again_only_where_nodes_have_not_written_anything() {
        let region = |change: &dyn Fn(&mut ProtoRegionError)| {
            let mut error = ProtoRegionError::default();
            change(&mut error);
            ClientError::RegionError(Box::new(error))
        };
        assert!(is_not_ready(&region(&|error| error.max_timestamp_not_synced = Some(Default::default()))));
        let busy = region(&|error| error.server_is_busy = Some(Default::default()));
        assert!(!is_not_ready(&busy) && is_undecided(&busy), "the first key may be committed");
        let moved = region(&|error| error.not_leader = Some(Default::default()));
        assert!(!is_not_ready(&moved) && !is_undecided(&moved));
        assert!(of_settled(busy).error.is_retryable());
        let layout = Layout::of("shop");
        let refused = of_commit(ClientError::OnePcFailure, &layout);
        assert!(refused.is_certain && refused.error.is_retryable());
        assert!(!not_undone(refused.error, unanswered(std::io::Error::other("late"))).is_retryable());
    }

    #[test]
    fn a_commit_that_a_node_aborts_may_be_made() {
        let layout = Layout::of("shop");
        let aborted = || key_error(|error| error.abort = "Error(Engine(Timeout))".into());
        assert!(is_undecided(&aborted()));
        let beside_a_conflict =
            ClientError::ExtractedErrors(vec![key_error(|error| error.conflict = Some(Default::default())), aborted()]);
        for error in [aborted(), beside_a_conflict] {
            let unknown = of_commit(error, &layout);
            assert!(!unknown.is_certain && matches!(unknown.error, Error::OutcomeUnknown(_)));
        }
        let settled = of_settled(aborted());
        assert!(settled.is_certain && settled.error.is_retryable());
    }

    #[test]
    fn reads_are_repeated_after_everything_that_passes() {
        let region = ClientError::RegionError(Box::default());
        assert_eq!(of_read(&ClientError::ExtractedErrors(vec![region])), ReadFailure::Transient);
        let gone = key_error(|error| error.txn_not_found = Some(Default::default()));
        assert_eq!(of_read(&gone), ReadFailure::Transient);
        assert_eq!(of_read(&ClientError::Unimplemented), ReadFailure::Lasting);
    }

    /// The text is tonic's. `pages_that_are_longer_than_a_message_are_read_in_parts` checks it with an error that tonic made.
    #[test]
    fn a_read_of_too_much_is_told_from_what_passes() {
        let text = "Error, message length too large: found 5242900 bytes, the limit is: 4194304 bytes";
        let failed = |status| of_read(&ClientError::ExtractedErrors(vec![ClientError::GrpcAPI(status)]));
        assert_eq!(failed(tonic::Status::out_of_range(text)), ReadFailure::TooLong);
        assert_eq!(failed(tonic::Status::unavailable("closed")), ReadFailure::Transient);
    }
}
