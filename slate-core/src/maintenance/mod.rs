//! Looking after collections: what they hold, and whether it is as it should be.

mod stats;
mod verify;

pub(crate) use stats::stats;
pub use stats::{CollectionStats, IndexStats};
pub use verify::{Fault, FaultKind, Verify, VerifyProgress, VerifyReport};
pub(crate) use verify::{VerifyRun, verify};
