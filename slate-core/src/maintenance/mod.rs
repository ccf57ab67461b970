//! Statistics of collections, and verification of their documents and indexes.

pub(crate) mod sizes;
mod stats;
mod verify;

pub(crate) use stats::stats;
pub use stats::{CollectionStats, DatabaseStats, IndexStats};
pub use verify::{VerifyFinding, VerifyFindingKind, VerifyProgress, VerifyReport};
pub(crate) use verify::{VerifyRun, verify};
