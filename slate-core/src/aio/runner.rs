use std::{panic, sync::Arc};

use slate_query::Code;
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinHandle,
};

use super::{
    operation::{CancelOnDrop, Operation},
    thread::TransactionThread,
};
use crate::{CancelToken, Error, ErrorKind, Result};

/// The place where the calls of a handle are executed. Only this type decides which thread runs a call.
#[derive(Clone, Debug)]
pub(super) enum Runner {
    Pool(Pool),
    /// The thread that owns the transaction.
    Thread(TransactionThread),
}

/// tokio's pool for blocking work, and the queue of writers before it.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    writers: Arc<Semaphore>,
}

/// The most writes that occupy a thread of the pool at once: enough for group commit; few enough that waiting writers leave
/// threads (of tokio's 512 by default) to readers.
const WRITERS_AT_ONCE: usize = 32;

impl Default for Pool {
    fn default() -> Self {
        Self { writers: Arc::new(Semaphore::new(WRITERS_AT_ONCE)) }
    }
}

impl Pool {
    /// Waits in the queue. Dropping the permit gives up the place.
    pub(super) async fn enter(&self) -> Result<OwnedSemaphorePermit> {
        Arc::clone(&self.writers).acquire_owned().await.map_err(|_| shut_down())
    }
}

impl Runner {
    /// Runs `work` with a token that is cancelled with `token`, and when the operation is dropped.
    pub(super) fn read<R: Send + 'static>(
        &self,
        token: &CancelToken,
        work: impl FnOnce(CancelToken) -> Result<R> + Send + 'static,
    ) -> Operation<R> {
        let (runner, abandoned) = (self.clone(), CancelOnDrop(token.child()));
        Operation::new(async move {
            let token = abandoned.0.clone();
            match runner {
                Self::Pool(_) => on_pool(token, work)?.joined().await,
                Self::Thread(thread) => thread.run(move || work(token)).await,
            }
        })
    }

    /// Runs `work` with a token that is cancelled with `token`, and, outside of a transaction, when the operation is
    /// dropped.
    pub(super) fn write<R: Send + 'static>(
        &self,
        token: &CancelToken,
        work: impl FnOnce(CancelToken) -> Result<R> + Send + 'static,
    ) -> Operation<R> {
        let token = token.child();
        match self.clone() {
            Self::Pool(pool) => {
                let abandoned = CancelOnDrop(token);
                Operation::new(async move {
                    let place = pool.enter().await?;
                    let work = move |token| {
                        // The work may outlive the operation and keeps the place until it ends.
                        let _place = place;
                        work(token)
                    };
                    on_pool(abandoned.0.clone(), work)?.joined().await
                })
            }
            Self::Thread(thread) => Operation::new(async move { thread.run(move || work(token)).await }),
        }
    }
}

/// Work on the pool.
pub(super) struct Task<R>(pub(super) JoinHandle<Result<R>>);

/// Sends work to the pool. Work that is cancelled before a thread takes it is not started.
pub(super) fn on_pool<R: Send + 'static>(
    token: CancelToken,
    work: impl FnOnce(CancelToken) -> Result<R> + Send + 'static,
) -> Result<Task<R>> {
    let Ok(runtime) = Handle::try_current() else {
        let message = "this call must be awaited within a tokio runtime, and there is none here";
        return Err(Error::invalid(Code::ILLEGAL_OPERATION, message));
    };
    Ok(Task(runtime.spawn_blocking(move || {
        token.check()?;
        work(token)
    })))
}

impl<R> Task<R> {
    async fn joined(self) -> Result<R> {
        joined(self.0.await)
    }
}

/// Returns the result of the work; resumes its panic.
pub(super) fn joined<R>(outcome: Result<Result<R>, tokio::task::JoinError>) -> Result<R> {
    match outcome {
        Ok(result) => result,
        Err(error) if error.is_panic() => panic::resume_unwind(error.into_panic()),
        Err(_) => Err(shut_down()),
    }
}

fn shut_down() -> Error {
    Error::new(ErrorKind::Interrupted, Code::INTERRUPTED, "the tokio runtime is shutting down")
}
