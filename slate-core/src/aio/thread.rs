use std::{
    sync::mpsc::{self, Receiver, Sender},
    thread,
};

use slate_query::Code;
use tokio::sync::oneshot;

use super::job::{Job, job};
use crate::{
    Error, ErrorKind, Result, Transaction,
    call::open_transactions::{Caller, OpenTransaction},
};

/// The thread that owns an open transaction and executes its calls in order.
///
/// It is not a thread of the pool, for two reasons. A write outside of the transaction is recognized by the thread: a
/// thread of the pool would soon run another task's write, which would be refused as reentrant. And the transaction must
/// continue even if all threads of the pool wait for it.
#[derive(Clone, Debug)]
pub struct TransactionThread {
    messages: Sender<Message>,
}

enum Message {
    Run(Job),
    End(Job<Transaction>),
}

impl TransactionThread {
    /// Begins a transaction on a thread of its own. The transaction is rolled back if the caller no longer awaits it.
    pub(super) async fn begin(
        begin: impl FnOnce() -> Result<Transaction> + Send + 'static,
    ) -> Result<(Self, OpenTransaction)> {
        let (messages, received) = mpsc::channel();
        let (reply, begun) = oneshot::channel();
        let caller = Caller::current();
        let serve = move || match caller.run(begin) {
            Ok(transaction) => {
                if reply.send(Ok(transaction.open().clone())).is_ok() {
                    serve(transaction, &received);
                }
            }
            Err(error) => drop(reply.send(Err(error))),
        };
        thread::Builder::new().name("slate-transaction".into()).spawn(serve).map_err(|error| {
            let message = format!("no thread for the transaction could be started: {error}");
            Error::new(ErrorKind::Io, Code::INTERNAL_ERROR, message)
        })?;
        let open = begun.await.map_err(|_| ended())??;
        Ok((Self { messages }, open))
    }

    /// Runs `work` after the calls before it. It is executed even if its caller is gone.
    pub(super) async fn run<R: Send + 'static, E: From<Error> + Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<R, E> + Send + 'static,
    ) -> Result<R, E> {
        let (job, answer) = job(|()| work(), ended);
        self.messages.send(Message::Run(job)).map_err(|_| ended())?;
        answer.await
    }

    /// Ends the transaction with `end`, after the calls before it, and then ends the thread.
    pub(super) async fn end<R: Send + 'static>(
        self,
        end: impl FnOnce(Transaction) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        let (end, answer) = job(end, ended);
        self.messages.send(Message::End(end)).map_err(|_| ended())?;
        answer.await
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
            Message::Run(run) => run(()),
            Message::End(end) => return end(transaction),
        }
    }
}

fn ended() -> Error {
    Error::transaction_over("it was committed or rolled back")
}
