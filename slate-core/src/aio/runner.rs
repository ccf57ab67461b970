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

/// Where the calls of a handle are carried out.
#[derive(Clone, Debug)]
pub(super) enum Runner {
    Pool(Pool),
    /// By the thread that owns the transaction.
    Thread(TransactionThread),
}

/// tokio's pool for blocking work, and the line before it.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    writers: Arc<Semaphore>,
}

/// Enough that committers meet and share a trip to the device; few enough that writers who wait for the turn leave
/// threads (of tokio's 512, if not said otherwise) to readers, of whom the writer whose turn it is may be one.
const WRITERS_AT_ONCE: usize = 32;

impl Default for Pool {
    fn default() -> Self {
        Self { writers: Arc::new(Semaphore::new(WRITERS_AT_ONCE)) }
    }
}

impl Pool {
    /// Waits in line; the place is given up with what comes back.
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
                        // Held by the work, which may outlive the operation.
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

/// Work that was handed to the pool.
pub(super) struct Task<R>(pub(super) JoinHandle<Result<R>>);

/// Hands work to the pool. What is cancelled before a thread comes to it is not begun.
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

/// What came of the work; its panic continues here.
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
