//! A store with one redb table per keyspace, in one file. A read transaction of redb is a snapshot, a write transaction a commit:
//! [`Optimistic`](crate::Optimistic) adds the transactions that are open side by side.
//!
//! # Durability
//!
//! redb has two kinds of commits: `Immediate` is on the device when it returns; `None` is visible at once and reaches the
//! device with the next `Immediate` commit. A [`Deferred`](crate::Durability::Deferred) commit is a `None`, and a
//! [`Sync`](crate::Durability::Sync) commit an `Immediate`, unless other commits wait behind it that will sync it.
//!
//! Commits have one phase: pages and header are synced together, and after a crash checksums show which of the last two
//! headers is complete. redb's two-phase commit protects only against an attacker who writes pages that collide under
//! xxh3 and crashes the machine during an fsync; it would double the cost of a commit. [`Options::recovery`] selects
//! whether a database opens after a crash without reading the whole file. A database that was closed always does.
//!
//! With [`Sharing::WithReaders`] redb locks parts of the file instead of the whole, and other processes read while one writes.
//! Every commit then is `Immediate` and has two phases, because the others must not see a commit that a crash can undo. A
//! reader begins each snapshot with the latest commit and caches nothing across commits.

mod ahead;
mod apply;
mod backlog;
mod backup;
mod compact;
mod counted_storage;
mod cursor;
mod error;
mod format;
mod guarded;
mod latest;
mod moving;
mod open;
mod options;
mod pages;
mod point_reader;
mod rewrite;
mod snapshot;
mod space;
mod steps;
mod store;
mod table;
mod version;
mod writer;

pub use cursor::RedbCursor;
pub use options::{Options, Recovery, Sharing, Verification};
pub use point_reader::RedbPointReader;
pub use redb::StorageBackend;
pub use snapshot::RedbSnapshot;
pub use store::{LocalRedb, RedbStore};
