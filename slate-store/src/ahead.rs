use crate::Result;

/// The keys and values of a range, in ascending order.
pub type Entries = Vec<(Box<[u8]>, Box<[u8]>)>;

/// A read that a store on a network has sent and whose answer is received later. See [`View::scan_ahead`](crate::View::scan_ahead).
pub struct Ahead(Box<dyn FnOnce() -> Result<Entries> + Send>);

impl Ahead {
    /// Wraps a read; `wait` waits for its answer.
    pub fn new(wait: impl FnOnce() -> Result<Entries> + Send + 'static) -> Self {
        Self(Box::new(wait))
    }

    /// Waits for the answer.
    ///
    /// # Errors
    /// Any failure of the backend's storage.
    pub fn wait(self) -> Result<Entries> {
        (self.0)()
    }
}

impl std::fmt::Debug for Ahead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ahead").finish_non_exhaustive()
    }
}
