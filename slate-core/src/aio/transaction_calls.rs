use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{
    job::{IfAbandoned, Job, job},
    runner::{on_pool, runtime},
    wait_limits::WaitLimits,
};
use crate::{CancelToken, Error, Result, Transaction, call::open_transactions::OpenTransaction};

/// An open transaction and its calls. Threads of tokio's pool execute the calls one after the other, in the order of their first
/// polls. Between calls the transaction takes no thread, so any number of transactions can be open.
#[derive(Clone)]
pub struct TransactionCalls(Arc<Mutex<CallQueue>>);

struct CallQueue {
    transaction: Held,
    waiting: VecDeque<Waiting>,
}

/// The current holder of the transaction.
enum Held {
    /// The queue, because no call is being executed.
    Here(Transaction),
    /// The thread that executes its calls.
    ByThread,
    /// None: the transaction has ended.
    Over,
}

enum Waiting {
    Call(Job),
    End(Job<Transaction>),
}

impl TransactionCalls {
    /// Begins a transaction on a thread of the pool. It is rolled back if the caller no longer awaits it.
    pub(super) async fn begin(
        begin: impl FnOnce() -> Result<Transaction> + Send + 'static,
    ) -> Result<(Self, OpenTransaction)> {
        let transaction = on_pool(CancelToken::new(), begin)?.await?;
        let open = transaction.open().clone();
        let state = CallQueue { transaction: Held::Here(transaction), waiting: VecDeque::new() };
        Ok((Self(Arc::new(Mutex::new(state))), open))
    }

    /// Runs `work` after all earlier calls. It is executed even if the operation is dropped, unless `limits` end its wait first.
    pub(super) async fn run<R: Send + 'static, E: From<Error> + Send + 'static>(
        &self,
        limits: WaitLimits,
        work: impl FnOnce() -> Result<R, E> + Send + 'static,
    ) -> Result<R, E> {
        let (job, answer) = job(limits, IfAbandoned::Executed, |()| work(), ended);
        self.push(Waiting::Call(job))?;
        answer.await
    }

    /// Ends the transaction with `end`, after all earlier calls.
    pub(super) async fn end<R: Send + 'static>(
        self,
        end: impl FnOnce(Transaction) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        let (end, answer) = job(CancelToken::new().into(), IfAbandoned::Executed, end, ended);
        self.push(Waiting::End(end))?;
        answer.await
    }

    /// Rolls the transaction back after all earlier calls, without waiting for that.
    pub(super) fn abandon(&self) {
        let mut state = self.state();
        match state.transaction {
            Held::Here(_) => {
                let idle = std::mem::replace(&mut state.transaction, Held::Over);
                drop(state);
                drop(idle);
            }
            Held::ByThread => state.waiting.push_back(Waiting::End(Box::new(drop))),
            Held::Over => {}
        }
    }

    /// Queues a call, and starts a thread for the transaction if none executes its calls.
    fn push(&self, call: Waiting) -> Result<()> {
        let runtime = runtime()?;
        let mut state = self.state();
        if let Held::Over = state.transaction {
            return Err(ended());
        }
        state.waiting.push_back(call);
        if let Held::Here(transaction) = std::mem::replace(&mut state.transaction, Held::ByThread) {
            drop(state);
            let serving = Serving { calls: self.clone(), transaction: Some(transaction) };
            runtime.spawn_blocking(|| serving.run());
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, CallQueue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The execution of a transaction's calls by a thread.
struct Serving {
    calls: TransactionCalls,
    /// `None` once the transaction was returned or has ended.
    transaction: Option<Transaction>,
}

impl Serving {
    /// Executes the calls until none is waiting.
    fn run(mut self) {
        loop {
            let mut state = self.calls.state();
            match state.waiting.pop_front() {
                Some(Waiting::Call(call)) => {
                    drop(state);
                    call(());
                }
                Some(Waiting::End(end)) => {
                    state.transaction = Held::Over;
                    let lost = std::mem::take(&mut state.waiting);
                    drop(state);
                    // Dropped without the lock: dropping a call wakes its task, which may lock the calls.
                    drop(lost);
                    if let Some(transaction) = self.transaction.take() {
                        end(transaction);
                    }
                    return;
                }
                None => {
                    if let Some(transaction) = self.transaction.take() {
                        state.transaction = Held::Here(transaction);
                    }
                    return;
                }
            }
        }
    }
}

/// A runtime that shuts down drops the work that it has not started: the transaction is rolled back, and its calls fail.
impl Drop for Serving {
    fn drop(&mut self) {
        let Some(transaction) = self.transaction.take() else { return };
        let mut state = self.calls.state();
        state.transaction = Held::Over;
        let lost = std::mem::take(&mut state.waiting);
        drop(state);
        drop((transaction, lost));
    }
}

crate::debug::shown! { self: TransactionCalls { waiting: self.state().waiting.len() } }

fn ended() -> Error {
    Error::transaction_over("it was committed or rolled back")
}
