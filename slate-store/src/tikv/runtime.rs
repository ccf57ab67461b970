use std::{future::Future, io, sync::mpsc};

use tokio::runtime::{Builder, Handle};

use super::error;
use crate::{Context, Error, Result};

/// The threads of the cluster's asynchronous client. Callers block until it answers.
pub(super) struct Runtime(Option<tokio::runtime::Runtime>);

/// Two threads: the client's work per request is small, and it waits for the network.
const THREADS: usize = 2;

impl Runtime {
    pub(super) fn start() -> Result<Self> {
        let mut builder = Builder::new_multi_thread();
        let runtime = builder.worker_threads(THREADS).thread_name("slate-tikv").enable_all().build();
        let failed = |error| Error::Io(Box::new(Context::new("the threads of the client do not start").because(error)));
        runtime.map(|runtime| Self(Some(runtime))).map_err(failed)
    }

    /// Waits for a future. May be called on any thread, also on one of another runtime, which is blocked meanwhile.
    pub(super) fn wait<T: Send + 'static>(
        &self,
        future: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let Some(runtime) = &self.0 else { return Err(error::unanswered(io::Error::other("the store is closed"))) };
        if Handle::try_current().is_err() {
            return runtime.block_on(future);
        }
        let (send, receive) = mpsc::sync_channel(1);
        runtime.spawn(async move {
            // Sending fails only if the waiting thread has panicked.
            let _ = send.send(future.await);
        });
        receive.recv().unwrap_or_else(|error| Err(error::unanswered(error)))
    }

    /// Starts a future whose result is received later.
    pub(super) fn begin<T: Send + 'static>(
        &self,
        future: impl Future<Output = Result<T>> + Send + 'static,
    ) -> mpsc::Receiver<Result<T>> {
        let (send, receive) = mpsc::sync_channel(1);
        if let Some(runtime) = &self.0 {
            runtime.spawn(async move {
                // Sending fails only if the receiver was dropped.
                let _ = send.send(future.await);
            });
        }
        receive
    }
}

impl Drop for Runtime {
    /// Does not wait, because the last handle can be dropped on a thread that must not block. Only the removal of locks of completed commits is cut
    /// off: the next reader or writer of such a key resolves its lock.
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_whose_task_ends_has_an_unknown_outcome() {
        let runtime = Runtime::start().unwrap();
        let other = Builder::new_current_thread().build().unwrap();
        let lost = other.block_on(async { runtime.wait::<()>(async { panic!("as the client can") }) });
        let error = lost.map_err(error::lost_commit).unwrap_err();
        assert!(matches!(error, Error::OutcomeUnknown(_)) && !error.is_retryable(), "{error}");
    }
}
