//! Keyspaces under one root, each a persistent map of branches, which are rows of leaves, which are rows of entries. A snapshot
//! is one pointer to the root, taken under a lock that is held for as long as it takes to copy or to swap a pointer; or, where
//! nobody holds the last root, to change up to some thousand keys of it in place. All other commits copy what they change beside
//! it, and swap.
//!
//! Writers are concurrent: each works on a copy that shares all it has not changed, and commits in turn, first committer
//! wins. Nothing is on a device: every durability is the same, and [`backup`](crate::Store::backup) and
//! [`MemoryStore::restore`] are how a database outlives its process.

mod backup;
mod block;
mod branch;
mod conflict;
mod cursor;
mod fence;
mod key;
mod leaf;
mod leaves;
mod noted;
mod points;
mod root;
mod snapshot;
mod store;
mod touched;
mod transaction;
mod tree;
mod value;

pub use cursor::{BorrowedCursor, MemoryCursor};
pub use points::{BorrowedPoints, MemoryPoints};
pub use snapshot::MemorySnapshot;
pub use store::MemoryStore;
pub use transaction::{MemoryTransaction, MemoryView};
