use std::sync::Arc;

use bson::RawDocumentBuf;

use super::{
    Database, Operation, Transaction,
    runner::{Runner, Short},
};
use crate::{CancelToken, IntoDocument, command::PreparedCommand, interrupt::WaitBudget};

/// Runs MongoDB's commands and holds the cursors that they open, as [`slate_core::Commands`](crate::Commands) does. A short command that
/// need not wait is executed by the task that awaits it.
#[derive(Clone, Debug)]
pub struct Commands {
    commands: crate::Commands,
    runner: Runner,
}

impl Database {
    /// Runs MongoDB's commands whose replies come in batches; see [`slate_core::Database::commands`](crate::Database::commands).
    pub fn commands(&self) -> Commands {
        Commands { commands: self.as_blocking().commands(), runner: self.runner() }
    }
}

impl Commands {
    /// Runs a command; see [`slate_core::Commands::run`](crate::Commands::run). Dropping the operation does not end it; for that see
    /// [`with_cancel`](Self::with_cancel).
    ///
    /// # Errors
    /// Fails as the blocking method does.
    pub fn run(&self, command: impl IntoDocument) -> Operation<RawDocumentBuf> {
        let (commands, runner, command) = (self.commands.clone(), self.runner.clone(), command.into_document());
        Operation::new(async move {
            let prepared = PreparedCommand::new(commands, command?);
            if prepared.writes() {
                runner.write_short(CancelToken::new(), prepared, PreparedCommand::run).await
            } else {
                runner.read(CancelToken::new(), prepared, PreparedCommand::run).await
            }
        })
    }

    /// Returns the same cursors for commands in a transaction.
    #[must_use]
    pub fn in_transaction(&self, transaction: &Transaction) -> Self {
        Self { commands: self.commands.in_scope(transaction.scope()), runner: transaction.runner().clone() }
    }

    /// Returns the same cursors for commands that the token cancels; see
    /// [`slate_core::Commands::with_cancel`](crate::Commands::with_cancel).
    #[must_use]
    pub fn with_cancel(&self, token: CancelToken) -> Self {
        Self { commands: self.commands.with_cancel(token), runner: self.runner.clone() }
    }

    /// Returns the same cursors for the commands of one of several users; see
    /// [`slate_core::Commands::owned_by`](crate::Commands::owned_by).
    #[must_use]
    pub fn owned_by(&self, owner: impl Into<Arc<[u8]>>) -> Self {
        Self { commands: self.commands.owned_by(owner), runner: self.runner.clone() }
    }

    /// Returns the blocking commands with the same cursors: to read a snapshot, and to close cursors.
    pub fn as_blocking(&self) -> &crate::Commands {
        &self.commands
    }
}

impl Short for PreparedCommand {
    fn within_budget(&self, budget: &WaitBudget) -> Option<Self> {
        Self::within_budget(self, budget)
    }
}
