use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Wake, Waker},
};

/// A waker that stores whether it was woken, and wakes the task that last called [`is_woken`](Self::is_woken).
#[derive(Debug, Default)]
pub(super) struct Signal {
    is_woken: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl Signal {
    /// Returns whether the signal was woken. If not, a later wake wakes the task.
    pub(super) fn is_woken(&self, context: &Context<'_>) -> bool {
        *self.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(context.waker().clone());
        // Read after the waker is stored, so that a wake in between is not lost.
        self.is_woken.load(Ordering::Acquire)
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        task.into_iter().for_each(Waker::wake);
    }
}
