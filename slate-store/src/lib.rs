//! The `Store` contract: ordered bytes, snapshots, transactions; and the backends that keep it.
//!
//! ```text
//! Store ─snapshot()→ Snapshot ─────────────┐
//!   └───begin()────→ Transaction ─view()→ View ─cursor(keyspace)→ Cursor: seek, step, lend an entry
//!                        └─ write, guard, commit   └─point_reader()→ PointReader: load keys, lend values
//! ```
//!
//! A store is ordered maps of bytes, [`Keyspace`]s, under one order of commits. What is promised of every backend stands
//! with the traits, and the `conformance` module (behind the feature of that name) checks it, on a backend of anyone's.
//! In what backends differ, they say so by their [`Capabilities`].
//!
//! | backend | where | writers | for |
//! |---|---|---|---|
//! | [`memory`] | in main memory | at once; the first to commit wins | tests, caches, what can be computed again |
//! | `redb` (feature, on unless switched off) | one file, pure Rust | take turns | everything else on one machine |
//! | `rocksdb` (feature) | a folder, C++ | at once; the first to commit wins | many writers, more data than memory |
//!
//! # What it is not
//!
//! It sees no documents, no indexes and no queries: those are bytes here. It has no thread of its own (RocksDB brings
//! some), no network and no `unsafe`.
//!
//! # Example
//!
//! ```
//! use std::time::Duration;
//! use slate_store::{Bounds, Cursor, Durability, Edge, Keyspace, Store, Transaction, TransactionExt, View};
//!
//! const FRUIT: Keyspace = Keyspace(1);
//!
//! fn harvest(store: &impl Store) -> slate_store::Result<()> {
//!     let mut transaction = store.begin(Duration::from_secs(5))?;
//!     transaction.put(FRUIT, b"apple", b"red")?;
//!     transaction.put(FRUIT, b"pear", b"green")?;
//!     transaction.commit(Durability::Sync)?;
//!
//!     let mut cursor = store.snapshot()?.cursor(FRUIT, Bounds { start: Some(b"b"), end: None })?;
//!     assert!(cursor.seek(Edge::First)?);
//!     assert_eq!(cursor.current(), Some((&b"pear"[..], &b"green"[..])));
//!     assert!(!cursor.step_forward()?);
//!     Ok(())
//! }
//!
//! harvest(&slate_store::memory::MemoryStore::new()).unwrap();
//! ```

mod bounds;
#[cfg(feature = "cached")]
mod cached;
mod capabilities;
#[cfg(feature = "conformance")]
pub mod conformance;
mod durability;
mod error;
mod files;
mod guard;
#[cfg(any(feature = "redb", feature = "rocksdb"))]
mod key_locality;
mod keyspace;
mod limits;
mod prefetch;
mod size;
mod store;
mod transaction;
mod version;
mod view;

pub mod memory;
#[cfg(feature = "redb")]
pub mod redb;
#[cfg(feature = "rocksdb")]
pub mod rocksdb;

pub use bounds::{Bounds, Edge, Landing, OwnedBounds};
#[cfg(feature = "cached")]
pub use cached::{Cached, CachedPointReader, CachedSnapshot, CachedTransaction};
pub use capabilities::Capabilities;
pub use durability::Durability;
pub use error::{Context, Error, Result, Source, TooLarge};
pub use guard::Guard;
pub use keyspace::Keyspace;
pub use limits::{MAX_KEY, MAX_VALUE};
pub use size::Size;
pub use store::Store;
pub use transaction::{Transaction, TransactionExt, Write};
pub use version::Version;
pub use view::{Cursor, PointReader, Snapshot, View};
