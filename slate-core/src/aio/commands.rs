use std::{
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use bson::RawDocumentBuf;

use super::{
    Database, Operation, Transaction,
    runner::{Runner, Short},
};
use crate::{CancelToken, IntoDocument, Result, changes::Waiting, command::PreparedCommand, interrupt::WaitBudget};

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
        Commands { commands: self.as_blocking().commands().without_waiting(), runner: self.runner() }
    }
}

impl Commands {
    /// Returns a future that ends when a commit has changed what the change stream with this cursor watches, or at once if the cursor is not
    /// that of a change stream. Call it before `getMore`, so that no commit falls in between: a `getMore` of such a cursor returns what there
    /// is, and does not wait.
    pub fn changed(&self, cursor: i64) -> Changed {
        let signal = Arc::new(Signal::default());
        let waiting = self.commands.wait(cursor, Arc::clone(&signal).into()).and_then(Result::ok);
        Changed { signal, waiting }
    }

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

/// Ends when a commit has changed what a change stream watches; see [`Commands::changed`].
#[derive(Debug)]
#[must_use = "nothing waits until it is awaited"]
pub struct Changed {
    signal: Arc<Signal>,
    waiting: Option<Waiting>,
}

#[derive(Debug, Default)]
struct Signal {
    is_woken: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        task.into_iter().for_each(Waker::wake);
    }
}

impl Changed {
    /// Returns whether the cursor is that of a change stream.
    pub fn is_of_stream(&self) -> bool {
        self.waiting.is_some()
    }
}

impl Future for Changed {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.waiting.is_none() {
            return Poll::Ready(());
        }
        *self.signal.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(context.waker().clone());
        // After the waker is stored, so that a commit in between wakes it.
        if self.signal.is_woken.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Short for PreparedCommand {
    fn within_budget(&self, budget: &WaitBudget) -> Option<Self> {
        Self::within_budget(self, budget)
    }
}
