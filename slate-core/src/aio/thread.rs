use std::{
    panic::{self, AssertUnwindSafe},
    sync::mpsc::{self, Receiver, Sender},
    thread,
};

use slate_query::Code;
use tokio::sync::oneshot;

use crate::{Error, ErrorKind, Result, Transaction, operation::scope::Scope};

/// The thread that owns an open transaction and carries out its calls, one after the other.
///
/// It is no thread of the pool's, for two reasons. Where writers take turns, the store knows a writer by the thread that
/// began: were that one of the pool's, it would soon carry out another task's write, which would be refused as waiting for
/// itself. And the transaction whose turn it is must go on even when all the pool's threads wait for that turn.
#[derive(Clone, Debug)]
pub(super) struct TransactionThread {
    messages: Sender<Message>,
}

enum Message {
    Run(Box<dyn FnOnce() + Send>),
    End(Box<dyn FnOnce(Transaction) + Send>),
}

impl TransactionThread {
    /// Begins a transaction on a thread of its own. Where nobody waits any more when it has begun, it is rolled back.
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

    /// Runs `work` after the calls before it. It is carried out even if nobody waits for it any more.
    pub(super) async fn run<R: Send + 'static>(&self, work: impl FnOnce() -> Result<R> + Send + 'static) -> Result<R> {
        let (reply, answered) = oneshot::channel();
        let run = move || drop(reply.send(panic::catch_unwind(AssertUnwindSafe(work))));
        self.messages.send(Message::Run(Box::new(run))).map_err(|_| ended())?;
        outcome(answered.await)
    }

    /// Ends the transaction by `end`, after the calls before it, and the thread with it.
    pub(super) async fn end<R: Send + 'static>(
        self,
        end: impl FnOnce(Transaction) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        let (reply, answered) = oneshot::channel();
        let end = move |transaction| {
            // The answer comes when everything is over, the turn to write given up too.
            drop(reply.send(panic::catch_unwind(AssertUnwindSafe(|| end(transaction)))));
        };
        self.messages.send(Message::End(Box::new(end))).map_err(|_| ended())?;
        outcome(answered.await)
    }

    /// Rolls the transaction back after the calls before it, and waits for nothing.
    pub(super) fn abandon(&self) {
        // Where it is over already, there is nobody to be told.
        drop(self.messages.send(Message::End(Box::new(drop))));
    }
}

/// Carries out the calls until the transaction is over, or nobody can make one any more: then it is rolled back.
fn serve(transaction: Transaction, messages: &Receiver<Message>) {
    for message in messages {
        match message {
            Message::Run(run) => run(),
            Message::End(end) => return end(transaction),
        }
    }
}

/// What came of a call; its panic continues here.
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
