//! Maps redb's errors; the only place that does so.

use std::{error, fmt, io, path::Path};

use ::redb::{CommitError, CompactionError, DatabaseError, Error as RedbError, TransactionError};

use crate::{Access, Context, Error, files};

/// The error of a write to a file whose list of free pages is damaged.
#[derive(Debug)]
pub(super) struct DamagedFreePages(pub(super) String);

impl fmt::Display for DamagedFreePages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the list of free pages is damaged, so nothing is written: {}. The documents may be sound: open it read-only and \
             copy them to another database. If that fails as well, because it was not closed properly, restore a backup",
            self.0
        )
    }
}

impl error::Error for DamagedFreePages {}

/// Maps an error of opening the database at `path`, which is `None` for storage of the caller's own.
pub(super) fn opening(error: DatabaseError, path: Option<&Path>, access: Access) -> Error {
    let at = |detail: &'static str| match path {
        Some(path) => Context::new(detail).at(path),
        None => Context::new(detail),
    };
    let context = |detail, error: DatabaseError| Box::new(at(detail).because(error));
    match error {
        DatabaseError::DatabaseAlreadyOpen if access == Access::ReadOnly => {
            let detail =
                "by this process or another, which does not share it: open it there with sharing, or read a backup";
            Error::Locked(context(detail, error))
        }
        DatabaseError::DatabaseAlreadyOpen => Error::Locked(context("by this process or another", error)),
        DatabaseError::LockProtocolMismatch => {
            Error::Locked(context("by a process with another version of redb, which locks differently", error))
        }
        DatabaseError::UpgradeRequired(_) => {
            Error::WrongFormat(context("an older version of redb wrote the file, in a format no longer read", error))
        }
        DatabaseError::Storage(::redb::StorageError::Unsupported) => Error::Unsupported(context(
            "this platform has no locks on parts of files, which sharing a file needs",
            error,
        )),
        DatabaseError::Storage(::redb::StorageError::Io(error)) => match error.downcast::<DamagedFreePages>() {
            Ok(damaged) => Error::Corrupt(Box::new(at("while opening it").because(damaged))),
            Err(error) => files::by_kind(error.kind(), at("while opening it").because(error)),
        },
        other => by_meaning(other.into(), at("while opening it")),
    }
}

/// Maps an error of the repair that opening for reading requires after a crash.
pub(super) fn repairing(error: DatabaseError, path: &Path) -> Error {
    match error {
        DatabaseError::Storage(::redb::StorageError::Io(error))
            if !error.get_ref().is_some_and(|error| error.is::<DamagedFreePages>()) =>
        {
            let detail = "it was not closed properly, and the repair, which takes milliseconds, has to write to it";
            files::by_kind(error.kind(), Context::new(detail).at(path).because(error))
        }
        other => opening(other, Some(path), Access::ReadOnly),
    }
}

/// Maps an error of reading the storage without redb.
pub(super) fn reading(error: io::Error) -> Error {
    storage(::redb::StorageError::Io(error))
}

/// Returns the error of a damaged page that a compaction in steps has found.
pub(super) fn damaged(detail: String) -> Error {
    Error::Corrupt(Box::new(Context::new(format!("the compaction has ended: {detail}"))))
}

/// Maps an error of anything except opening and committing.
pub(super) fn storage(error: impl Into<RedbError>) -> Error {
    by_meaning(error.into(), Context::default())
}

/// Returns the error of a write to a full device. Later writes are tried again.
pub(super) fn full(source: io::Error) -> Error {
    let detail = "nothing of it was stored; later writes work as soon as there is room";
    Error::Full(Box::new(Context::new(detail).because(source)))
}

/// Maps the error of a commit that did not fit on the device and is visible nevertheless.
pub(super) fn not_undone(error: Error) -> Error {
    let detail =
        "it did not fit on the device, and could not be undone; reopen the database to see which commits it has";
    Error::OutcomeUnknown(Box::new(Context::new(detail).because(error)))
}

/// Maps an error of beginning a write transaction. `was_full`: whether an earlier write did not fit.
pub(super) fn beginning(error: TransactionError, was_full: bool) -> Error {
    match error {
        TransactionError::Storage(::redb::StorageError::PreviousIo) if was_full => {
            let detail = "in an earlier commit; free some space and reopen the database to write again";
            Error::Full(Box::new(Context::new(detail).because(error)))
        }
        error => storage(error),
    }
}

/// Maps an error of clearing the backlog of a device that was full.
pub(super) fn backlog(error: io::Error) -> Error {
    let detail = "the device failed after it had been full; reopen the database to see which commits it has";
    Error::OutcomeUnknown(Box::new(Context::new(detail).because(error)))
}

/// Maps an error of a commit. If the device failed, redb rejects writes until the database is reopened.
pub(super) fn committing(error: CommitError) -> Error {
    match error {
        // redb rolled the transaction back because an earlier operation failed.
        CommitError::TransactionPoisoned => Error::Io(Box::new(
            Context::new("an operation of the transaction failed half-way, and it was rolled back").because(error),
        )),
        CommitError::Storage(::redb::StorageError::Io(error)) if files::is_full(error.kind()) => {
            Error::Full(Box::new(Context::new("while committing; reopen the database to continue").because(error)))
        }
        CommitError::Storage(error @ ::redb::StorageError::Corrupted(_)) => storage(error),
        other => Error::OutcomeUnknown(Box::new(
            Context::new("the device failed; reopen the database to see which commits it has").because(other),
        )),
    }
}

/// Maps an error of compacting the file.
pub(super) fn compacting(error: CompactionError) -> Error {
    match error {
        CompactionError::TransactionInProgress => Error::Conflict(Box::new(
            Context::new("the file cannot be compacted while a snapshot is open").because(error),
        )),
        other => storage(other),
    }
}

fn by_meaning(error: RedbError, context: Context) -> Error {
    match error {
        RedbError::Corrupted(_) => Error::Corrupt(Box::new(context.because(error))),
        RedbError::Io(error) => by_io(error, context),
        RedbError::PreviousIo => Error::Io(Box::new(
            context.or("the storage failed earlier; the database rejects writes until it is reopened").because(error),
        )),
        other => Error::Io(Box::new(context.because(other))),
    }
}

/// Maps an I/O error during operation to `Full`, `Corrupt` or `Io`. A missing file or missing permissions already fail
/// when the database is opened.
fn by_io(error: io::Error, context: Context) -> Error {
    match error.kind() {
        kind if files::is_full(kind) => Error::Full(Box::new(context.because(error))),
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => Error::Corrupt(Box::new(context.because(error))),
        _ => Error::Io(Box::new(context.because(error))),
    }
}
