use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Wake, Waker},
};

/// Remembers that it was woken, and wakes the task that has looked last.
#[derive(Debug, Default)]
pub(super) struct Signal {
    is_woken: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl Signal {
    /// Returns whether it was woken. If not, the task is woken when it is.
    pub(super) fn is_woken(&self, context: &Context<'_>) -> bool {
        *self.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(context.waker().clone());
        // After the waker is stored, so that a commit in between wakes it.
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
