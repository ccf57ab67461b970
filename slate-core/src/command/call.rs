use std::time::Instant;

use slate_query::{
    Code,
    raw::{Doc, Value},
};

use super::{
    common::Common, concern::Concerns, cursor::CursorOwner, fields::Fields, own_collection::OwnCollection,
    parked_cursors::ParkedCursors,
};
use crate::{Activity, CancelToken, Error, Result, call::Scope, interrupt::WaitBudget, namespace};

/// A command document, split into its name, the value of the name, and the other fields; with its scope.
pub(super) struct Call<'c> {
    pub(super) at: CommandScope<'c>,
    pub(super) name: &'c str,
    pub(super) target: Value<'c>,
    pub(super) fields: Fields<'c>,
}

/// The scope in which a command is executed, with the caller's settings.
#[derive(Clone, Copy)]
pub(super) struct CommandScope<'c> {
    pub(super) scope: &'c Scope,
    /// The command document as it was sent, for the description of its cursor. Within `explain`, the command that is explained.
    pub(super) command: Doc<'c>,
    pub(super) running: Running<'c>,
    /// The open cursors. `None`: replies contain all documents.
    pub(super) cursors: Option<&'c ParkedCursors>,
    /// A collection that only this caller has.
    pub(super) own: Option<&'c OwnCollection>,
    /// The database of commands without `$db`.
    pub(super) database: Option<&'c str>,
    /// The user: the command may use only the user's cursors, and the cursor that it opens belongs to the user. `None`: it may use all cursors.
    pub(super) owner: Option<&'c CursorOwner>,
    pub(super) waits: Waits,
}

/// A running command: its limits, and its activity.
#[derive(Clone, Copy)]
pub(crate) struct Running<'c> {
    /// When the command began.
    pub(crate) began: Instant,
    /// The deadline of the `explain` that contains the command; `None` for other commands.
    pub(crate) end: Option<Instant>,
    /// Cancels the command.
    pub(crate) token: Option<&'c CancelToken>,
    /// Shows the work of the command to other threads.
    pub(crate) activity: Option<&'c Activity>,
    /// Limits the work of a command that must not wait. `None` if the command may wait.
    pub(crate) budget: Option<&'c WaitBudget>,
}

/// Whether `getMore` waits for an event of a change stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Waits {
    #[default]
    Yes,
    /// No: the caller waits.
    No,
}

impl<'c> Running<'c> {
    /// Returns these limits with this budget.
    #[cfg(feature = "async")]
    pub(crate) fn within(self, budget: &'c WaitBudget) -> Self {
        Self { budget: Some(budget), ..self }
    }
}

impl<'c> CommandScope<'c> {
    /// Returns a scope in which replies contain all documents.
    pub(super) fn without_cursors(scope: &'c Scope, database: Option<&'c str>, command: Doc<'c>) -> Self {
        Self {
            scope,
            command,
            running: Running { began: Instant::now(), end: None, token: None, activity: None, budget: None },
            own: None,
            cursors: None,
            database,
            owner: None,
            waits: Waits::Yes,
        }
    }
}

impl<'c> Call<'c> {
    /// Splits the command document.
    ///
    /// # Errors
    /// Fails if the document has no fields, is damaged, or contains a field twice.
    pub(super) fn read(at: CommandScope<'c>) -> Result<Self> {
        let (name, target, fields) = Fields::read_command(at.command)?;
        Ok(Self { at, name, target, fields })
    }

    /// Returns the database that the command is sent to: `$db`, or that of the handle. `None` if neither is given.
    ///
    /// # Errors
    /// Fails with `TypeMismatch` (14) if it is not a string.
    pub(super) fn database(&self) -> Result<Option<&'c str>> {
        let Some(database) = self.fields.peek("$db").filter(|database| !database.is_nullish()) else {
            return Ok(self.at.database);
        };
        database.as_str().map(Some).ok_or_else(|| self.fields.mistyped("$db", database, "string"))
    }

    /// Reads the fields that every command accepts.
    ///
    /// # Errors
    /// Fails as [`Common::take`] does.
    pub(super) fn common(&mut self, concerns: Concerns) -> Result<Common> {
        Common::take(&mut self.fields, concerns, self.at)
    }

    /// Returns the name of the command's collection.
    ///
    /// # Errors
    /// Fails with `InvalidNamespace` (73) if the value is not a string or not a valid collection name.
    pub(super) fn collection(&self) -> Result<&'c str> {
        let name = self.target.as_str().ok_or_else(|| {
            let message = format!("collection name has invalid type {}", self.target.kind().alias());
            Error::invalid(Code::INVALID_NAMESPACE, message).at(self.name)
        })?;
        if !self.at.own.is_some_and(|own| own.has_name(name)) {
            namespace::check(name)?;
        }
        Ok(name)
    }
}
