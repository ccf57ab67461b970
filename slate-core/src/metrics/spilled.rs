use std::ops::AddAssign;

/// Counts the data that an operation wrote to temporary files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spilled {
    /// Runs written because memory was full.
    pub(crate) runs: u64,
    /// Bytes written, including those of merge passes.
    pub(crate) bytes: u64,
}

impl AddAssign for Spilled {
    fn add_assign(&mut self, other: Self) {
        self.runs += other.runs;
        self.bytes += other.bytes;
    }
}
