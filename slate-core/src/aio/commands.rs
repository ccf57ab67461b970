use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use bson::{RawDocument, RawDocumentBuf};

use super::{
    Database, Operation, Sleep, Snapshot, Transaction, poller::poll, runner::Runner, signal::Signal,
    wait_limits::WaitLimits,
};
use crate::{
    Activity, CancelToken, Error, IntoDocument, Result,
    changes::{Polled, Waiting},
    command::Running,
    interrupt::{Interrupt, WaitBudget},
};

/// Runs MongoDB's commands and holds the cursors that they open, as [`slate_core::Commands`](crate::Commands) does. A short command that
/// need not wait is executed by the task that awaits it.
#[derive(Clone, Debug)]
pub struct Commands {
    commands: crate::Commands,
    runner: Runner,
    sleep: Option<Sleep>,
}

/// The start, the cancellation and the activity of a running command.
#[derive(Clone, Copy, Debug)]
pub struct RunningCommand<'c> {
    /// When the command began: its time limit (`maxTimeMS`) counts from here, and includes the wait for a thread.
    pub began: Instant,
    /// Cancels the command. While it waits for a thread, it ends without delay.
    pub token: &'c CancelToken,
    /// Shows the work of the command to other threads.
    pub activity: &'c Activity,
}

impl<'c> RunningCommand<'c> {
    /// Describes a command that begins now.
    pub fn new(token: &'c CancelToken, activity: &'c Activity) -> Self {
        Self { began: Instant::now(), token, activity }
    }
}

impl<'c> From<RunningCommand<'c>> for Running<'c> {
    fn from(RunningCommand { began, token, activity }: RunningCommand<'c>) -> Self {
        Self { began, end: None, token: Some(token), activity: Some(activity), budget: None }
    }
}

/// An owned [`Running`], for a thread that may wait.
struct OwnedRunning {
    began: Instant,
    token: Option<CancelToken>,
    activity: Option<Activity>,
}

impl OwnedRunning {
    fn of(running: Running<'_>) -> Self {
        Self { began: running.began, token: running.token.cloned(), activity: running.activity.cloned() }
    }

    fn lend(&self) -> Running<'_> {
        let Self { began, token, activity } = self;
        Running { began: *began, end: None, token: token.as_ref(), activity: activity.as_ref(), budget: None }
    }
}

impl Database {
    /// Returns a handle that runs MongoDB's commands with replies in batches; see [`slate_core::Database::commands`](crate::Database::commands).
    pub fn commands(&self) -> Commands {
        Commands { commands: self.as_blocking().commands().without_waiting(), runner: self.runner(), sleep: None }
    }
}

impl Commands {
    /// Returns a future that completes at the next commit that changes what the change stream with this cursor watches; without delay if the cursor
    /// does not read a change stream. Call it before `getMore`, so that no commit is missed: `getMore` returns the events that are there, and does
    /// not wait.
    pub fn changed(&self, cursor: i64) -> Changed {
        let signal = Arc::new(Signal::default());
        let waiting = self.commands.wait(cursor, Arc::clone(&signal).into()).and_then(Result::ok);
        let poll = |(waiting, database)| (waiting, poll(&database, Arc::clone(&signal).into(), None).ok().flatten());
        let waiting = waiting.map(poll);
        Changed { signal, waiting }
    }

    /// Runs a command; see [`slate_core::Commands::run`](crate::Commands::run). Dropping the operation does not end a command that a thread executes;
    /// [`with_cancel`](Self::with_cancel) does.
    ///
    /// # Errors
    /// Fails as the blocking method does.
    pub fn run(&self, command: impl IntoDocument) -> Operation<RawDocumentBuf> {
        let (commands, command) = (self.clone(), command.into_document());
        Operation::new(async move { commands.run_with(&Arc::new(command?), commands.commands.running()).await })
    }

    /// Runs a command as [`run`](Self::run) does, but copies neither the command nor this handle for a short one.
    ///
    /// # Errors
    /// Fails as [`run`](Self::run) does.
    pub async fn run_shared(
        &self,
        command: &Arc<RawDocumentBuf>,
        running: RunningCommand<'_>,
    ) -> Result<RawDocumentBuf> {
        self.run_with(command, running.into()).await
    }

    /// Returns the time limit of a command; for `getMore` that of the command that opened the cursor, `None` for a change stream. `None` also if the
    /// limit is invalid: the command will fail.
    pub fn time_limit(&self, command: &RawDocument) -> Option<Duration> {
        self.commands.time_limit(command)
    }

    async fn run_with(&self, command: &Arc<RawDocumentBuf>, running: Running<'_>) -> Result<RawDocumentBuf> {
        let Self { commands, runner, .. } = self;
        let writes = commands.writes(command);
        let run = |budget: &WaitBudget| {
            commands.is_short(command).then(|| commands.run_within(running.within(budget), command))
        };
        let tried = if writes { runner.try_write(run) } else { runner.try_read(run) };
        if let Some(result) = tried {
            return result;
        }
        let limits = self.wait_limits(command, running);
        let (commands, command, running) = (commands.clone(), Arc::clone(command), OwnedRunning::of(running));
        let run = move || commands.run_within(running.lend(), &command);
        if writes { runner.write(limits, run).await } else { runner.block(limits, run).await }
    }

    /// Returns the limits of a command while it waits for a thread.
    fn wait_limits(&self, command: &RawDocument, running: Running<'_>) -> WaitLimits {
        let mut interrupt = Interrupt::default();
        running.token.iter().for_each(|&token| interrupt.cancel(token.clone()));
        interrupt.end_at(self.time_limit(command).and_then(|limit| running.began.checked_add(limit)));
        WaitLimits::of(interrupt, self.sleep)
    }

    /// Runs a command and then `then` in one transaction. `then` gets the reply, and a handle for further commands in the transaction. It must be
    /// short, because the awaiting task may execute it, and it may be repeated, also on another thread. The transaction is
    /// [detached](crate::TransactionOptions::detached) from the task. It is repeated after errors for which `is_conflict` returns true, as a single
    /// write is: it takes turns with other writes.
    ///
    /// # Errors
    /// Fails, with nothing changed, if the command, `then` or the commit fails.
    pub async fn run_then<R: Send + 'static, E: From<Error> + Send + 'static>(
        &self,
        command: &Arc<RawDocumentBuf>,
        running: RunningCommand<'_>,
        then: impl Fn(&crate::Commands, RawDocumentBuf) -> Result<R, E> + Send + 'static,
        is_conflict: fn(&E) -> bool,
    ) -> Result<R, E> {
        let (Self { commands, runner, .. }, running) = (self, Running::from(running));
        let run = |budget: &WaitBudget| {
            commands.is_short(command).then(|| commands.run_then(running.within(budget), command, &then, is_conflict))
        };
        if let Some(result) = runner.try_write(run)
            && !result.as_ref().is_err_and(is_conflict)
        {
            return result;
        }
        let limits = self.wait_limits(command, running);
        let (commands, command, running) = (commands.clone(), Arc::clone(command), OwnedRunning::of(running));
        runner.write(limits, move || commands.run_then(running.lend(), &command, then, is_conflict)).await
    }

    /// Sets the clock that wakes a command at its deadline while it waits for a thread. Without it, such a command fails only when a thread begins
    /// it.
    #[must_use]
    pub fn with_sleep(self, sleep: Sleep) -> Self {
        Self { sleep: Some(sleep), ..self }
    }

    /// Returns a handle with the same cursors whose commands read a snapshot.
    #[must_use]
    pub fn at_snapshot(&self, snapshot: &Snapshot) -> Self {
        self.with(self.commands.at_snapshot(snapshot.as_blocking()))
    }

    /// Returns a handle with the same cursors whose commands run in a transaction.
    #[must_use]
    pub fn in_transaction(&self, transaction: &Transaction) -> Self {
        let commands = self.commands.in_scope(transaction.scope());
        Self { commands, runner: transaction.runner().clone(), sleep: self.sleep }
    }

    /// Returns a handle with the same cursors whose commands the token cancels; see
    /// [`slate_core::Commands::with_cancel`](crate::Commands::with_cancel).
    #[must_use]
    pub fn with_cancel(&self, token: CancelToken) -> Self {
        self.with(self.commands.with_cancel(token))
    }

    /// Returns a handle with the same cursors whose commands show their work in `activity`; see
    /// [`slate_core::Commands::with_activity`](crate::Commands::with_activity).
    #[must_use]
    pub fn with_activity(&self, activity: &Activity) -> Self {
        self.with(self.commands.with_activity(activity))
    }

    /// Returns a handle with the same cursors for one of several users; see
    /// [`slate_core::Commands::owned_by`](crate::Commands::owned_by).
    #[must_use]
    pub fn owned_by(&self, owner: impl Into<Arc<[u8]>>) -> Self {
        self.with(self.commands.owned_by(owner))
    }

    /// Returns a handle with the same cursors for which this collection consists of these documents; see
    /// [`slate_core::Commands::with_collection`](crate::Commands::with_collection).
    #[must_use]
    pub fn with_collection(&self, database: &str, name: &str, documents: impl Into<Arc<[RawDocumentBuf]>>) -> Self {
        self.with(self.commands.with_collection(database, name, documents))
    }

    fn with(&self, commands: crate::Commands) -> Self {
        Self { commands, runner: self.runner.clone(), sleep: self.sleep }
    }

    /// Returns the blocking handle with the same cursors.
    pub fn as_blocking(&self) -> &crate::Commands {
        &self.commands
    }
}

/// Completes at the next commit that changes what a change stream watches; see [`Commands::changed`].
#[derive(Debug)]
#[must_use = "nothing waits until it is awaited"]
pub struct Changed {
    signal: Arc<Signal>,
    waiting: Option<(Waiting, Option<Polled>)>,
}

impl Changed {
    /// Returns whether the cursor reads a change stream and is not in use.
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
        if self.signal.is_woken(context) { Poll::Ready(()) } else { Poll::Pending }
    }
}
