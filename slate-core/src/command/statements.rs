//! What `insert`, `update` and `delete` share: many statements in one command, and what becomes of refused ones.

use slate_query::{Code, raw::Doc};

use super::{
    fields::{Fields, missing},
    reply::Reply,
};
use crate::{Error, ErrorKind, Result};

/// MongoDB's own limit on the statements of a command.
const MAX_STATEMENTS: usize = 100_000;

/// Whether the statements after a refused one are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// They are not.
    Ordered,
    /// They are.
    Unordered,
}

impl Order {
    pub(super) fn take(fields: &mut Fields<'_>) -> Result<Self> {
        Ok(if fields.boolean("ordered")?.unwrap_or(true) { Self::Ordered } else { Self::Unordered })
    }
}

/// Takes what every write command may have beside its statements, and none of which changes anything here.
pub(super) fn take_idle(fields: &mut Fields<'_>) -> Result<()> {
    fields.truth("bypassDocumentValidation")?;
    fields.integer("stmtId")?;
    fields.any("stmtIds");
    fields.refuse(&["collectionUUID", "encryptionInformation", "isTimeseriesNamespace"])
}

/// The statements themselves.
///
/// # Errors
/// `IDLFailedToParse` (40414) where they are missing, `InvalidLength` (16) where there are none or too many.
pub(super) fn required<T>(statements: Option<Vec<T>>, command: &str, name: &str) -> Result<Vec<T>> {
    let statements = statements.ok_or_else(|| missing(command, name))?;
    if statements.is_empty() || statements.len() > MAX_STATEMENTS {
        let message = format!("Write batch sizes must be between 1 and {MAX_STATEMENTS}. Got {}", statements.len());
        return Err(Error::invalid(Code::INVALID_LENGTH, message).at(name));
    }
    Ok(statements)
}

/// Refuses `let` where it defines anything.
pub(super) fn refuse_variables(variables: Option<Doc<'_>>) -> Result<()> {
    match variables {
        Some(variables) if !variables.is_empty() => Err(Error::unsupported_by_name("let").at("let")),
        _ => Ok(()),
    }
}

/// The refused statements, by their places.
#[derive(Debug, Default)]
pub(super) struct WriteErrors(Vec<(usize, Error)>);

impl WriteErrors {
    /// Runs statements in turn; those that are refused are noted.
    ///
    /// # Errors
    /// Where the storage fails: the statements before stand, their commits are done.
    pub(super) fn run<S>(statements: &[S], order: Order, mut run: impl FnMut(usize, &S) -> Result<()>) -> Result<Self> {
        let mut errors = Self::default();
        for (place, statement) in statements.iter().enumerate() {
            match run(place, statement) {
                Ok(()) => {}
                Err(error) if is_refusal(&error) => {
                    let interrupted = error.kind() == ErrorKind::Interrupted;
                    errors.0.push((place, error));
                    if interrupted || order == Order::Ordered {
                        break;
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(errors)
    }

    pub(super) fn note(&mut self, place: usize, error: Error) {
        self.0.push((place, error));
    }

    /// Puts them into the reply, where there are any.
    pub(super) fn tell(&self, reply: &mut Reply) {
        if self.0.is_empty() {
            return;
        }
        reply.array("writeErrors", |errors| {
            for (nth, (place, error)) in self.0.iter().enumerate() {
                errors.nest(&nth.to_string(), |told| {
                    told.count("index", u64::try_from(*place).unwrap_or(u64::MAX));
                    told.int("code", error.code());
                    told.text("errmsg", &error.to_string());
                });
            }
        });
    }
}

/// Whether the statement is at fault, or its time was up, and not the storage.
fn is_refusal(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Invalid
            | ErrorKind::Unsupported
            | ErrorKind::DuplicateKey
            | ErrorKind::TooLarge
            | ErrorKind::Conflict
            | ErrorKind::Interrupted
    )
}
