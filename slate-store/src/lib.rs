//! The `Store` contract (ordered keys, snapshots, transactions) and the backends that implement it.
//!
//! ```text
//! Store ─snapshot()→ Snapshot ─────────────┐
//!   └───begin()────→ Transaction ─view()→ View ─cursor(keyspace)→ Cursor: seek, step, lend an entry
//!                        └─ write, guard, commit   └─point_reader()→ PointReader: load keys, lend values
//! ```
//!
//! A store is a set of ordered maps of bytes, [`Keyspace`]s, with one total order of commits. The documentation of the
//! traits states what every backend guarantees. The crate `slate-store-conformance` tests it for any
//! backend, including those outside this crate. [`Capabilities`] describe the differences between backends.
//!
//! | backend | where | for |
//! |---|---|---|
//! | [`memory`] | in main memory | tests, caches, what can be computed again |
//! | `redb` (default feature) | one file, pure Rust | everything else on one machine |
//! | `rocksdb` (feature) | a folder, C++ | many writers, more data than memory |
//! | `tikv` (feature) | a cluster of machines | more than one machine holds, or serves |
//!
//! The contract has two levels. The first three backends implement the lower one, [`LocalStore`]: snapshots, and commits of complete sets of
//! changes. [`Optimistic`] adds the transactions, in the same way for all of them: they conflict over the same keys, and nothing waits for an open
//! one. A store on a network implements [`Store`] itself.
//!
//! # What it is not
//!
//! This crate knows no documents, indexes or queries: they are bytes to it. It has no `unsafe`. Only the backend `tikv` uses the network,
//! and starts threads for it; RocksDB starts its own.
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

// A build with simulated locks (`--cfg simulated`) has no unit tests: they use the locks of the standard library.
#![cfg(not(all(test, simulated)))]

mod ahead;
mod bounds;
mod cache_reads;
#[cfg(feature = "cached")]
mod cached;
mod capabilities;
mod crash_point;
mod damage;
mod durability;
mod error;
mod files;
mod guard;
#[cfg(any(feature = "redb", feature = "rocksdb"))]
mod key_locality;
mod keyspace;
mod limits;
mod local;
mod oldest_snapshot;
mod optimistic;
mod options;
mod prefetch;
mod size;
mod store;
mod superseded;
mod sync;
#[cfg(feature = "redb")]
mod trace;
mod transaction;
mod version;
mod view;

pub mod memory;
#[cfg(feature = "redb")]
pub mod redb;
#[cfg(feature = "rocksdb")]
pub mod rocksdb;
#[cfg(feature = "tikv")]
pub mod tikv;

pub use ahead::{Ahead, Entries};
pub use bounds::{Bounds, Edge, Landing, OwnedBounds};
pub use cache_reads::CacheReads;
#[cfg(feature = "cached")]
pub use cached::{Cached, CachedPointReader, CachedSnapshot, CachedTransaction};
pub use capabilities::Capabilities;
pub use crash_point::crash_point;
pub use damage::{Checked, Damage};
pub use durability::Durability;
pub use error::{Context, Error, Result, Source, TooLarge};
pub use guard::Guard;
pub use keyspace::Keyspace;
pub use limits::{MAX_KEY, MAX_VALUE};
pub use local::{Change, Compaction, Flushing, LastWrites, LocalStore};
pub use oldest_snapshot::OldestSnapshot;
pub use optimistic::{
    Changes, Optimistic, OptimisticCursor, OptimisticPointReader, OptimisticTransaction, OptimisticView,
};
pub use options::{Access, Recovery, Sharing, Verification};
pub use size::{Size, SizeDetail};
pub use store::{BackupProgress, Store};
pub use transaction::{LastStage, Transaction, TransactionExt, Write};
pub use version::Version;
pub use view::{Cursor, PointReader, ReadEnd, Snapshot, View};
