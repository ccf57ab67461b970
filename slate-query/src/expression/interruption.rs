use std::{
    fmt,
    sync::atomic::{AtomicU32, Ordering},
    time::Instant,
};

use crate::Result;

/// Ends the evaluation of an expression early. Operators that evaluate an expression for each element of an array count
/// the elements here, because arrays in arrays can make an evaluation arbitrarily long.
pub struct Interruption {
    check: Box<dyn Fn() -> Result<()> + Send + Sync>,
    elements: AtomicU32,
    deadline: Box<dyn Fn() -> Option<Instant> + Send + Sync>,
}

/// The number of elements between two checks. Reading the clock costs about as much as evaluating a small expression.
const ELEMENTS_PER_CHECK: u32 = 128;

impl Interruption {
    /// Creates an interruption. `check` fails if the evaluation must end. `deadline` returns the time from which on it fails, for work
    /// that cannot be interrupted and is better not begun; a cursor that continues has another one than before.
    pub fn new(
        check: impl Fn() -> Result<()> + Send + Sync + 'static,
        deadline: impl Fn() -> Option<Instant> + Send + Sync + 'static,
    ) -> Self {
        Self { check: Box::new(check), elements: AtomicU32::new(0), deadline: Box::new(deadline) }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        (self.deadline)()
    }

    /// Counts an element; checks every [`ELEMENTS_PER_CHECK`] elements.
    ///
    /// # Errors
    /// The error of the check.
    #[inline]
    pub(super) fn tick(&self) -> Result<()> {
        // Elements that other threads count at the same time may be lost.
        let elements = self.elements.load(Ordering::Relaxed).wrapping_add(1);
        self.elements.store(elements, Ordering::Relaxed);
        if elements.is_multiple_of(ELEMENTS_PER_CHECK) { (self.check)() } else { Ok(()) }
    }
}

impl fmt::Debug for Interruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Interruption")
    }
}
