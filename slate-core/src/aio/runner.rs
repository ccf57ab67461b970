//! Decides which thread executes a call. No other file of `aio` does.
//!
//! | call | executed |
//! |---|---|
//! | a short read or write of what is in memory | by the task that awaits it |
//! | any other read | by a thread of tokio's pool for blocking work |
//! | any other write | by one of at most [`MAX_WRITERS`] threads of that pool, in the order of the queue |
//! | a call of an open transaction | by a thread of that pool, after the transaction's calls before it |
//!
//! A call is first tried by the task that awaits it. The store refuses the call if it would have to wait for a device, a network or a
//! lock ([`Store::try_snapshot`](slate_store::Store::try_snapshot), [`Store::try_begin`](slate_store::Store::try_begin)). The call is
//! cancelled as soon as a node of its plan has processed 128 rows. A write is also cancelled if it conflicts, changes the catalog, or
//! other writes are queued. The pool then executes the call from the beginning.

use std::{
    collections::VecDeque,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use slate_query::Code;
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore},
};

use super::{
    job::{Answer, IfAbandoned, Job, job},
    operation::{CancelOnDrop, Operation},
    transaction_calls::TransactionCalls,
    wait_limits::WaitLimits,
};
use crate::{CancelToken, Error, ErrorKind, Result, interrupt::WaitBudget};

/// Where the calls of a handle are executed.
#[derive(Clone, Debug)]
pub enum Runner {
    /// tokio's pool for blocking work.
    Pool(Arc<Pool>),
    /// The queue of the transaction's calls.
    Transaction(TransactionCalls),
}

/// A call that can be tried without waiting.
pub(super) trait Short: Send + Sized + 'static {
    /// Returns the same call, but one that ends when it has spent the budget. `None` if the call always waits.
    fn within_budget(&self, budget: &WaitBudget) -> Option<Self>;
}

impl Runner {
    /// Executes a read; a short one that need not wait is executed by the awaiting task. `token` is cancelled when the
    /// operation is dropped.
    pub(super) fn read<B: Short, R: Send + 'static>(
        &self,
        token: CancelToken,
        read: B,
        run: impl Fn(B) -> Result<R> + Send + 'static,
    ) -> Operation<R> {
        let (runner, abandoned) = (self.clone(), CancelOnDrop(token));
        Operation::new(async move {
            if let Some(result) = runner.try_read(|budget| read.within_budget(budget).map(&run)) {
                return result;
            }
            runner.execute(abandoned.0.clone().into(), move || run(read)).await
        })
    }

    /// Executes `work`, which may block, unless `limits` end its wait for a thread. Their token is cancelled when the operation is dropped.
    pub(super) fn block<R: Send + 'static>(
        &self,
        limits: impl Into<WaitLimits>,
        work: impl FnOnce() -> Result<R> + Send + 'static,
    ) -> Operation<R> {
        let (runner, limits) = (self.clone(), limits.into());
        let abandoned = CancelOnDrop(limits.abandoned());
        Operation::new(async move {
            let answer = runner.execute(limits, work).await;
            drop(abandoned);
            answer
        })
    }

    async fn execute<R: Send + 'static>(
        self,
        limits: WaitLimits,
        work: impl FnOnce() -> Result<R> + Send + 'static,
    ) -> Result<R> {
        match self {
            Self::Pool(_) => on_pool(limits, work)?.await,
            Self::Transaction(calls) => calls.run(limits, work).await,
        }
    }

    /// Tries a read on the calling thread. `None` if `run` returns `None` or spends the budget: a thread that may wait must then execute the read
    /// from the beginning.
    pub(super) fn try_read<R, E: From<Error>>(
        &self,
        run: impl FnOnce(&WaitBudget) -> Option<Result<R, E>>,
    ) -> Option<Result<R, E>> {
        let Self::Pool(_) = self else { return None };
        // A task always has a runtime. Looking it up would change a reference count that all its threads share.
        let is_task = tokio::task::try_id().is_some();
        if let Some(Err(error)) = (!is_task).then(runtime) {
            return Some(Err(error.into()));
        }
        let budget = WaitBudget::default();
        run(&budget).filter(|_| !budget.is_spent())
    }

    /// Like [`try_read`](Self::try_read), for a write; also `None` if other writes are queued.
    pub(super) fn try_write<R, E: From<Error>>(
        &self,
        run: impl FnOnce(&WaitBudget) -> Option<Result<R, E>>,
    ) -> Option<Result<R, E>> {
        match self {
            Self::Pool(pool) if pool.is_idle() => self.try_read(run),
            Self::Pool(_) | Self::Transaction(_) => None,
        }
    }

    /// Executes a write; a short one that need not wait is executed by the awaiting task. Outside of a transaction, `token`
    /// is cancelled when the operation is dropped.
    pub(super) fn write_short<B: Short, R: Send + 'static>(
        &self,
        token: CancelToken,
        write: B,
        run: impl Fn(B) -> Result<R> + Send + 'static,
    ) -> Operation<R> {
        let runner = self.clone();
        Operation::new(async move {
            if let Some(result) = runner.try_write(|budget| write.within_budget(budget).map(&run)) {
                return result;
            }
            runner.write(token, move || run(write)).await
        })
    }

    /// Executes a write, unless `limits` end its wait for a thread. Outside of a transaction, their token is cancelled when the operation is
    /// dropped.
    pub(super) fn write<R: Send + 'static, E: From<Error> + Send + 'static>(
        &self,
        limits: impl Into<WaitLimits>,
        work: impl FnOnce() -> Result<R, E> + Send + 'static,
    ) -> Operation<R, E> {
        let limits = limits.into();
        match self.clone() {
            Self::Pool(pool) => {
                let abandoned = CancelOnDrop(limits.abandoned());
                Operation::new(async move {
                    let runtime = runtime()?;
                    let (job, answer) = job(limits, IfAbandoned::Dropped, |()| work(), shut_down);
                    pool.push(job, &runtime);
                    let answer = answer.await;
                    drop(abandoned);
                    answer
                })
            }
            Self::Transaction(calls) => Operation::new(async move { calls.run(limits, work).await }),
        }
    }
}

/// The queue of writes, and the threads of tokio's pool that execute them. A thread executes writes until the queue is
/// empty, so no thread is woken per write under a steady load.
#[derive(Debug)]
pub struct Pool {
    queue: Mutex<Queue>,
    beginners: Arc<Semaphore>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Job>,
    /// Number of threads that execute writes.
    threads: usize,
}

/// Maximum number of threads of the pool that writes occupy at once: enough for group commit; few enough that writers that
/// wait for each other leave threads (of tokio's 512 by default) to reads.
const MAX_WRITERS: usize = 32;

/// After this many writes a thread queues behind the pool's other work, so that writes do not block the reads of a small pool.
const WRITES_PER_TURN: usize = 64;

impl Default for Pool {
    fn default() -> Self {
        Self { queue: Mutex::default(), beginners: Arc::new(Semaphore::new(MAX_WRITERS)) }
    }
}

impl Pool {
    /// Waits until fewer than [`MAX_WRITERS`] transactions are beginning. Dropping the permit lets the next one begin.
    pub(super) async fn enter(&self) -> Result<OwnedSemaphorePermit> {
        Arc::clone(&self.beginners).acquire_owned().await.map_err(|_| shut_down())
    }

    fn push(self: Arc<Self>, write: Job, runtime: &Handle) {
        let mut queue = self.queue();
        queue.waiting.push_back(write);
        if queue.threads < MAX_WRITERS {
            queue.threads += 1;
            drop(queue);
            WriterThread { pool: self, ended: false }.start(runtime);
        }
    }

    /// Returns whether no write waits for a thread.
    fn is_idle(&self) -> bool {
        self.queue().waiting.is_empty()
    }

    /// Returns the next write. If there is none, the calling thread no longer counts as a writer.
    fn next(&self) -> Option<Job> {
        let mut queue = self.queue();
        let next = queue.waiting.pop_front();
        if next.is_none() {
            queue.threads -= 1;
        }
        next
    }

    /// Locks the queue. No code panics while it is locked.
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

crate::debug::shown! { self: Queue { waiting: self.waiting.len(), threads: self.threads } }

/// A thread that executes writes, or will once the pool starts it.
struct WriterThread {
    pool: Arc<Pool>,
    ended: bool,
}

impl WriterThread {
    fn start(self, runtime: &Handle) {
        runtime.spawn_blocking(move || self.run());
    }

    fn run(mut self) {
        for _ in 0..WRITES_PER_TURN {
            match self.pool.next() {
                Some(write) => write(()),
                None => {
                    self.ended = true;
                    return;
                }
            }
        }
        self.start(&Handle::current());
    }
}

/// A runtime that shuts down drops the threads that it has not started. If no thread is left for the waiting writes, which
/// may belong to other runtimes, they fail instead of waiting forever.
impl Drop for WriterThread {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let mut queue = self.pool.queue();
        queue.threads -= 1;
        let lost = if queue.threads == 0 { mem::take(&mut queue.waiting) } else { VecDeque::new() };
        // Dropped without the lock: dropping a write wakes its task, which may lock the queue.
        drop(queue);
        drop(lost);
    }
}

/// Executes work on tokio's pool for blocking work. The work is not begun if `limits` end the wait for a thread, or
/// if nobody awaits the answer any more when a thread is free.
pub(super) fn on_pool<R: Send + 'static>(
    limits: impl Into<WaitLimits>,
    work: impl FnOnce() -> Result<R> + Send + 'static,
) -> Result<Answer<R>> {
    let runtime = runtime()?;
    let (job, answer) = job(limits.into(), IfAbandoned::Dropped, |()| work(), shut_down);
    runtime.spawn_blocking(|| job(()));
    Ok(answer)
}

pub(super) fn runtime() -> Result<Handle> {
    Handle::try_current().map_err(|_| {
        let message = "this call must be awaited within a tokio runtime, and there is none here";
        Error::invalid(Code::ILLEGAL_OPERATION, message)
    })
}

fn shut_down() -> Error {
    Error::new(ErrorKind::Interrupted, Code::INTERRUPTED, "the tokio runtime is shutting down")
}
