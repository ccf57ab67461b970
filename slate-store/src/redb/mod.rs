//! A store with one redb table per keyspace, in one file. One writer is admitted at a time; a read transaction is a
//! snapshot.
//!
//! # Durability
//!
//! redb has two kinds of commits: `Immediate` is on the device when it returns; `None` is visible at once and reaches the
//! device with the next `Immediate` commit. A [`Deferred`](crate::Durability::Deferred) commit is a `None`. A
//! [`Sync`](crate::Durability::Sync) commit is an `Immediate` if the writer queue is empty. Otherwise it is a `None`: it
//! lets the queued writers continue, and waits until one of them makes an `Immediate` commit. Concurrent commits
//! therefore share a sync, and a single writer syncs without waiting.
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
mod backup;
mod counted_storage;
mod cursor;
mod error;
mod format;
mod latest;
mod open;
mod options;
mod point_reader;
mod rewrite;
mod snapshot;
mod space;
mod store;
mod table;
mod transaction;
mod version;
mod view;
mod writer;
mod writer_queue;

pub use cursor::{RedbCursor, RedbTransactionCursor};
pub use options::{Options, Recovery, Sharing};
pub use point_reader::{RedbPointReader, RedbTransactionPointReader};
pub use redb::StorageBackend;
pub use snapshot::RedbSnapshot;
pub use store::RedbStore;
pub use transaction::RedbTransaction;
pub use view::RedbTransactionView;
