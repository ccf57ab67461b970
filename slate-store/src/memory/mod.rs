//! A store in main memory. Every commit is a persistent tree, so readers do not wait for writers.
//!
//! ```text
//! MemoryStore ─ Shared ─┬─ log: CommitLog       which keys the recent commits accessed (commit_log.rs)
//!                       └─ root: Arc<Root>      the last commit: its version and its keyspaces (root.rs)
//!                                 │ OrdMap
//!                               Tree            one keyspace (tree.rs)
//!                                 │ OrdMap      by Separator: the key range of a leaf (separator.rs)
//!                             Arc<Leaf>         up to 32 or 64 sorted entries (leaf.rs)
//!                                 │ Vec
//!                            (Key, Value)       short ones inline, long ones shared (key.rs, value.rs)
//! ```
//!
//! A snapshot is a copy of the pointer to the root. A transaction holds the root that it reads and a
//! write set per keyspace (write_set.rs). Point reads search sorted writes and then the tree; other reads build a tree with
//! the writes applied.
//!
//! A commit checks the log for conflicts, then applies its write sets to the last commit: in place if nobody reads that
//! commit, otherwise to a copy, which shares all unchanged leaves, and replaces the pointer. The invariants of commits
//! are stated at `Shared` (store.rs) and `CommitLog`, those of trees at `Tree`.
//!
//! Nothing is written to a device, so all durabilities are equivalent. [`backup`](crate::Store::backup) writes a file
//! that [`MemoryStore::restore`] reads.

mod backup;
mod commit_log;
mod cursor;
mod key;
mod leaf;
mod points;
mod root;
mod separator;
mod snapshot;
mod store;
mod transaction;
mod tree;
mod value;
mod write_set;

pub use cursor::{BorrowedCursor, MemoryCursor};
pub use points::{MemoryPointReader, MemoryTransactionPointReader};
pub use snapshot::MemorySnapshot;
pub use store::MemoryStore;
pub use transaction::{MemoryTransaction, MemoryView};
