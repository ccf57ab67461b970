//! The memory of the large values that an evaluation holds at the same time.
//!
//! One value is bounded by itself. But operands, variables and the parts of an array are held while others are computed, at each level of
//! an expression, so their sum is counted, too, in a cell of the thread. Lists of less than a mebibyte count nothing.

use std::cell::Cell;

use super::Evaluated;
use crate::{Code, Error, Result};

/// A list is counted each time that it has grown by this much.
const LARGE: usize = 1 << 20;

/// The most bytes that lists of values may take together: four of the largest values.
const MOST_HELD: usize = 256 << 20;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
}

/// What a list of values holds, until it is dropped.
#[derive(Debug, Default)]
pub(super) struct Held {
    bytes: usize,
    counted: usize,
}

impl Held {
    /// Counts a value that was added to the list. A borrowed one takes no memory.
    ///
    /// # Errors
    /// `ExceededMemoryLimit` (146) if all lists of the thread hold more than [`MOST_HELD`].
    #[inline]
    pub(super) fn add(&mut self, value: &Evaluated<'_>) -> Result<()> {
        let Evaluated::Owned(value) = value else { return Ok(()) };
        self.bytes += value.as_value().bytes().len();
        if self.bytes - self.counted < LARGE { Ok(()) } else { self.count() }
    }

    #[cold]
    #[inline(never)]
    fn count(&mut self) -> Result<()> {
        let held = HELD.get() + (self.bytes - self.counted);
        if held > MOST_HELD {
            return Err(Error::new(Code(146), "an expression holds more than 256 MiB of values at the same time"));
        }
        self.counted = self.bytes;
        HELD.set(held);
        Ok(())
    }
}

impl Drop for Held {
    #[inline]
    fn drop(&mut self) {
        if self.counted > 0 {
            HELD.set(HELD.get() - self.counted);
        }
    }
}
