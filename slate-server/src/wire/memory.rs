use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// The memory for messages of all connections, while they arrive and are executed.
#[derive(Debug)]
pub(crate) struct MessageMemory {
    pub(crate) most: usize,
    used: AtomicUsize,
}

/// The share of one connection. Dropping this releases it.
#[derive(Debug)]
pub(super) struct Held {
    memory: Arc<MessageMemory>,
    bytes: usize,
}

impl MessageMemory {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, used: AtomicUsize::new(0) }
    }
}

impl Held {
    pub(super) fn new(memory: Arc<MessageMemory>) -> Self {
        Self { memory, bytes: 0 }
    }

    /// Increases the share to `bytes`. Returns `false` if the other connections hold too much.
    pub(super) fn grow_to(&mut self, bytes: usize) -> bool {
        let Some(more) = bytes.checked_sub(self.bytes).filter(|more| *more > 0) else { return true };
        let before = self.memory.used.fetch_add(more, Ordering::Relaxed);
        if before.saturating_add(more) > self.memory.most {
            self.memory.used.fetch_sub(more, Ordering::Relaxed);
            return false;
        }
        self.bytes = bytes;
        true
    }

    pub(super) fn holds_any(&self) -> bool {
        self.bytes > 0
    }

    /// Releases the share.
    pub(super) fn release(&mut self) {
        if self.bytes == 0 {
            return;
        }
        self.memory.used.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes = 0;
    }

    pub(super) fn most(&self) -> usize {
        self.memory.most
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.release();
    }
}
