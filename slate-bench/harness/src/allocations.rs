//! Counts the allocations of an operation.

use serde::{Deserialize, Serialize};

/// The allocations of one thread during an operation. Memory that C libraries allocate themselves is not included.
///
/// The feature `allocations` installs the counting allocator, which forwards to the system's. Counting costs a few
/// nanoseconds per allocation, also in timed runs, and only for Rust code. Programs that are compared with other
/// databases are built without it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocations {
    /// Number of allocations.
    pub count: u64,
    /// Allocated bytes.
    pub bytes: u64,
    /// Most bytes allocated at the same time.
    pub peak: u64,
}

impl Allocations {
    /// Runs a closure and returns what this thread allocated. `None` without the feature.
    pub fn during<R>(operation: impl FnOnce() -> R) -> (R, Option<Self>) {
        #[cfg(feature = "allocations")]
        {
            let mut result = None;
            let counted = allocation_counter::measure(|| result = Some(operation()));
            let allocations = Self { count: counted.count_total, bytes: counted.bytes_total, peak: counted.bytes_max };
            #[expect(clippy::expect_used, reason = "`measure` has called the closure, which sets it")]
            let result = result.expect("the closure was called");
            (result, Some(allocations))
        }
        #[cfg(not(feature = "allocations"))]
        (operation(), None)
    }

    /// Adds the allocations of a later operation.
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
