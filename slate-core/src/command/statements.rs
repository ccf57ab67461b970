//! The common part of `insert`, `update` and `delete`: several statements in one command, and the errors of rejected
//! ones.

use bson::RawDocumentBuf;
use slate_query::{
    Code,
    raw::{Doc, Kind},
};

use super::{
    common::Common,
    databases::shown_message,
    fields::{Fields, MAX_STATEMENTS, missing},
    reply::Reply,
};
use crate::{Error, ErrorKind, Result, call::Scope, call_context::CallContext, exec::Target};

/// Whether statements after a rejected one are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Stops at the first rejected statement.
    Ordered,
    /// Executes all statements.
    Unordered,
}

impl Order {
    pub(super) fn take(fields: &mut Fields<'_>) -> Result<Self> {
        Ok(if fields.boolean("ordered")?.unwrap_or(true) { Self::Ordered } else { Self::Unordered })
    }
}

/// Reads the fields that every write command accepts: the options for storing documents, and the ids of `count` statements, by which a server
/// recognizes a repetition.
///
/// # Errors
/// Fails with `InvalidOptions` (72) for both `stmtId` and `stmtIds`, with `InvalidLength` (16) for another number of ids than of statements.
pub(super) fn take_common(fields: &mut Fields<'_>, count: usize) -> Result<CallContext> {
    let mut options = CallContext::default();
    options.bypass_document_validation(fields.truth("bypassDocumentValidation")?.unwrap_or_default());
    options.bypass_empty_ts_replacement(fields.boolean_not_null("bypassEmptyTsReplacement")?.unwrap_or_default());
    let (first, ids) = (fields.integer("stmtId")?, fields.value("stmtIds"));
    if let Some(value) = ids {
        let ids = value.as_array().ok_or_else(|| fields.mistyped("stmtIds", value, "array"))?;
        if let Some(id) = ids.values().find(|id| !matches!(id.kind(), Kind::Int32 | Kind::Int64 | Kind::Double)) {
            return Err(fields.mistyped("stmtIds", id, "int"));
        }
        if first.is_some() {
            return Err(Error::invalid(Code::INVALID_OPTIONS, "May not specify both stmtId and stmtIds").at("stmtIds"));
        }
        if ids.values().count() != count {
            let message = "Number of statement ids must match the number of batch entries.";
            return Err(Error::invalid(Code::INVALID_LENGTH, message).at("stmtIds"));
        }
    }
    fields.refuse(&["collectionUUID", "encryptionInformation", "isTimeseriesNamespace"])?;
    Ok(options)
}

/// Returns the statements of a command.
///
/// # Errors
/// Fails with `IDLFailedToParse` (40414) if they are missing, with `InvalidLength` (16) if there are none.
pub(super) fn required<T>(statements: Option<Vec<T>>, command: &str, name: &str) -> Result<Vec<T>> {
    let statements = statements.ok_or_else(|| missing(command, name))?;
    if statements.is_empty() {
        let message = format!("Write batch sizes must be between 1 and {MAX_STATEMENTS}. Got 0");
        return Err(Error::invalid(Code::INVALID_LENGTH, message).at(name));
    }
    Ok(statements)
}

/// Fails with `InvalidOptions` (72) if a retryable write may change several documents: a repetition could not return the same reply.
pub(super) fn check_retryable(common: &Common, target: Target, option: &str) -> Result<()> {
    if common.is_retryable && target == Target::All {
        let message = format!("Cannot use (or request) retryable writes with {option}");
        return Err(Error::invalid(Code::INVALID_OPTIONS, message));
    }
    Ok(())
}

/// Returns the statement of a write to explain. Fails with `InvalidLength` (16) unless there is exactly one.
pub(super) fn only<'s, T>(statements: &'s [T], name: &str) -> Result<&'s T> {
    match statements {
        [only] => Ok(only),
        _ => Err(Error::invalid(Code::INVALID_LENGTH, "explained write batches must be of size 1").at(name)),
    }
}

/// The rejected statements: position and error.
#[derive(Debug, Default)]
pub(super) struct WriteErrors(Vec<(usize, Error)>);

impl WriteErrors {
    /// Executes statements one after the other and records the rejected ones.
    ///
    /// # Errors
    /// Fails if the storage fails, if the command is interrupted, or if a statement in an open transaction conflicts, so that the transaction must be
    /// repeated. Each fails the whole command in MongoDB, too. The commits of earlier statements remain.
    pub(super) fn run<S>(
        scope: &Scope,
        statements: &[S],
        order: Order,
        mut run: impl FnMut(usize, &S) -> Result<()>,
    ) -> Result<Self> {
        let mut errors = Self::default();
        for (place, statement) in statements.iter().enumerate() {
            match run(place, statement) {
                Ok(()) => {}
                Err(error) if is_refusal(&error, scope) => {
                    errors.note(place, error);
                    if order == Order::Ordered {
                        break;
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(errors)
    }

    pub(super) fn note(&mut self, place: usize, error: Error) {
        let error = error.refused_after(self.0.len());
        self.0.push((place, error));
    }

    /// Returns the errors and the positions of their statements.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (usize, &Error)> {
        self.0.iter().map(|(place, error)| (*place, error))
    }

    /// Appends the errors to the reply, if there are any.
    pub(super) fn append_to(&self, reply: &mut Reply) {
        if self.0.is_empty() {
            return;
        }
        reply.array("writeErrors", |errors| {
            for (nth, (place, error)) in self.iter().enumerate() {
                errors.nest(&nth.to_string(), |entry| {
                    entry.count("index", place);
                    append_error(error, entry);
                });
            }
        });
    }
}

/// Appends the fields of an error of a rejected statement: code, message and details, and the key of a duplicate.
pub(super) fn append_error(error: &Error, entry: &mut Reply) {
    entry.int("code", error.code());
    if let Some(details) = error.details().and_then(|details| RawDocumentBuf::try_from(details).ok()) {
        entry.document("errInfo", Doc::from(&details));
    }
    if error.kind() == ErrorKind::DuplicateKey {
        for (name, keys) in [("keyPattern", error.key_pattern()), ("keyValue", error.key())] {
            if let Some(keys) = keys.and_then(|keys| RawDocumentBuf::try_from(keys).ok()) {
                entry.document(name, Doc::from(&keys));
            }
        }
    }
    entry.text("errmsg", &shown_message(error, error.to_string(), None));
}

/// Returns whether only the statement is rejected: the error is not one of the storage or of an open transaction, nor an interruption.
fn is_refusal(error: &Error, scope: &Scope) -> bool {
    match error.kind() {
        ErrorKind::Invalid | ErrorKind::Unsupported | ErrorKind::DuplicateKey | ErrorKind::TooLarge => true,
        ErrorKind::Conflict => !matches!(scope, Scope::Transaction(_)),
        _ => false,
    }
}
