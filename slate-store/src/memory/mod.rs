//! A store in main memory. Every commit is a persistent tree, so readers do not wait for writers.
//!
//! ```text
//! LocalMemory ─ root: Arc<Root>      the last commit: its version and its keyspaces (root.rs)
//!                        │ OrdMap
//!                      Tree          one keyspace (tree.rs)
//!                        │ OrdMap    by Separator: the key range of a leaf (separator.rs)
//!                    Arc<Leaf>       up to 32 or 64 sorted entries (leaf.rs)
//!                        │ Vec
//!                   (Key, Value)     short ones inline, long ones shared (key.rs, value.rs)
//! ```
//!
//! A snapshot is a copy of the pointer to the root. A commit is applied to the last root: in place if it is small and no reader holds that root,
//! otherwise to a copy, which shares all unchanged leaves, and which then replaces the root. The invariants of commits are stated at `LocalMemory`
//! (store.rs), those of trees at `Tree`. [`Optimistic`](crate::Optimistic) adds the transactions.
//!
//! Nothing is written to a device, so all durabilities are equivalent. [`backup`](crate::Store::backup) writes a file
//! that [`MemoryStore::restore`] reads.

mod backup;
mod cursor;
mod key;
mod leaf;
mod points;
mod root;
mod separator;
mod snapshot;
mod store;
mod tree;
mod value;

pub use cursor::MemoryCursor;
pub use points::MemoryPointReader;
pub use snapshot::MemorySnapshot;
pub use store::{LocalMemory, MemoryStore};
