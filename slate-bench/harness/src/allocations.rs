//! What an operation allocates, counted.

use serde::{Deserialize, Serialize};

/// What one thread allocated during an operation, as its allocator was asked: the memory that C libraries take on their
/// own is not among it.
///
/// The feature `allocations` makes the counting allocator the program's (it hands on to the system's). Counting takes a few
/// nanoseconds per allocation, in timed runs too, and for Rust code only: what is compared with others is built without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocations {
    /// How many.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The most bytes held at one time.
    pub peak: u64,
}

impl Allocations {
    /// Runs it, and tells what this thread allocated meanwhile; `None` where nothing is counted.
    pub fn during<R>(operation: impl FnOnce() -> R) -> (R, Option<Self>) {
        #[cfg(feature = "allocations")]
        {
            let mut result = None;
            let counted = allocation_counter::measure(|| result = Some(operation()));
            let allocations = Self { count: counted.count_total, bytes: counted.bytes_total, peak: counted.bytes_max };
            #[expect(clippy::expect_used, reason = "`measure` has called the closure, which sets it")]
            let result = result.expect("the operation was run");
            (result, Some(allocations))
        }
        #[cfg(not(feature = "allocations"))]
        (operation(), None)
    }

    /// Adds those of what was run after it.
    pub fn add(&mut self, next: Self) {
        self.count += next.count;
        self.bytes += next.bytes;
        self.peak = self.peak.max(next.peak);
    }
}

#[cfg(all(test, feature = "allocations"))]
mod tests {
    use super::*;

    #[test]
    fn allocations_are_counted() {
        let (length, allocations) = Allocations::during(|| {
            let first = std::hint::black_box(vec![1_u8; 100]);
            drop(first);
            std::hint::black_box(vec![1_u8; 50]).len()
        });
        assert_eq!(length, 50);
        assert_eq!(allocations.unwrap(), Allocations { count: 2, bytes: 150, peak: 100 });
    }
}
