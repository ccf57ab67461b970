use std::{
    panic::{self, AssertUnwindSafe},
    sync::mpsc::{self, Receiver, Sender},
    thread,
};

use slate_query::Code;
use tokio::sync::oneshot;

use crate::{Error, ErrorKind, Result, Transaction, operation::scope::Scope};

/// The thread that owns an open transaction and executes its calls in order.
///
/// It is not a thread of the pool, for two reasons. Stores with one writer at a time identify the writer by its thread: a
/// thread of the pool would soon run another task's write, which would be refused as reentrant. And the transaction must
/// continue even if all threads of the pool wait for it.
#[derive(Clone, Debug)]
pub(super) struct TransactionThread {
    messages: Sender<Message>,
}

enum Message {
    Run(Box<dyn FnOnce() + Send>),
    End(Box<dyn FnOnce(Transaction) + Send>),
}

impl TransactionThread {
    /// Begins a transaction on a thread of its own. It is rolled back if its caller is gone by then.
    pub(super) async fn begin(begin: impl FnOnce() -> Result<Transaction> + Send + 'static) -> Result<(Self, Scope)> {
        let (messages, received) = mpsc::channel();
        let (reply, begun) = oneshot::channel();
        let serve = move || match begin() {
            Ok(transaction) => {
                if reply.send(Ok(transaction.scope())).is_ok() {
                    serve(transaction, &received);
                }
            }
            Err(error) => drop(reply.send(Err(error))),
        };
        thread::Builder::new().name("slate-transaction".into()).spawn(serve).map_err(|error| {
            let message = format!("no thread for the transaction could be started: {error}");
            Error::new(ErrorKind::Io, Code::INTERNAL_ERROR, message)
        })?;
        let scope = begun.await.map_err(|_| ended())??;
        Ok((Self { messages }, scope))
    }

    /// Runs `work` after the calls before it. It is executed even if its caller is gone.
    pub(super) async fn run<R: Send + 'static>(&self, work: impl FnOnce() -> Result<R> + Send + 'static) -> Result<R> {
        let (reply, answered) = oneshot::channel();
        let run = move || drop(reply.send(panic::catch_unwind(AssertUnwindSafe(work))));
        self.messages.send(Message::Run(Box::new(run))).map_err(|_| ended())?;
        outcome(answered.await)
    }

    /// Ends the transaction with `end`, after the calls before it, and then the thread.
    pub(super) async fn end<R: Send + 'static>(
        self,
        end: impl FnOnce(Transaction) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        let (reply, answered) = oneshot::channel();
        let end = move |transaction| {
            // The reply is sent after the transaction has left the writer queue.
            drop(reply.send(panic::catch_unwind(AssertUnwindSafe(|| end(transaction)))));
        };
        self.messages.send(Message::End(Box::new(end))).map_err(|_| ended())?;
        outcome(answered.await)
    }

    /// Rolls the transaction back after the calls before it, without waiting.
    pub(super) fn abandon(&self) {
        // The send fails if the transaction is already over.
        drop(self.messages.send(Message::End(Box::new(drop))));
    }
}

/// Executes the calls until the transaction ends. If all senders are dropped, it is rolled back.
fn serve(transaction: Transaction, messages: &Receiver<Message>) {
    for message in messages {
        match message {
            Message::Run(run) => run(),
            Message::End(end) => return end(transaction),
        }
    }
}

/// Returns the result of a call; resumes its panic.
fn outcome<R>(answer: Result<thread::Result<Result<R>>, oneshot::error::RecvError>) -> Result<R> {
    match answer {
        Ok(Ok(result)) => result,
        Ok(Err(panic)) => panic::resume_unwind(panic),
        Err(_) => Err(ended()),
    }
}

fn ended() -> Error {
    Error::transaction_over("it was committed or rolled back")
}
