//! One redb table per keyspace, in one file. Writers take turns; a read transaction is a snapshot.
//!
//! # Durability
//!
//! redb knows two kinds of commit: `Immediate`, on the device when it returns, and `None`, visible at once and on the
//! device with the next `Immediate` one. A [`Deferred`](crate::Durability::Deferred) commit is a `None`. A
//! [`Sync`](crate::Durability::Sync) commit is an `Immediate` when nobody waits for the turn to write; otherwise it is a
//! `None` that waits, turn given up, until an `Immediate` one of those that were queued behind it has covered it. So
//! committers that meet share one trip to the device, and a lone one pays for nothing else.
//!
//! Commits have one phase: pages and header go to the device together, and checksums tell after a crash which of the two
//! last headers is whole. The second phase that redb offers guards only against an attacker who writes pages that
//! collide with xxh3 and crashes the machine in the middle of an fsync; it would double what a commit costs. What it buys
//! besides, opening again after a crash without reading the whole file, is [`Options::recovery`]'s to choose. A database
//! that was closed opens at once either way.

mod ahead;
mod backup;
mod cursor;
mod error;
mod format;
mod latest;
mod open;
mod options;
mod point_reader;
mod snapshot;
mod store;
mod table;
mod transaction;
mod version;
mod view;
mod writer;
mod writer_queue;

pub use cursor::{RedbCursor, RedbTransactionCursor};
pub use options::{Access, Options, Recovery};
pub use point_reader::{RedbPointReader, RedbTransactionPointReader};
pub use redb::StorageBackend;
pub use snapshot::RedbSnapshot;
pub use store::RedbStore;
pub use transaction::RedbTransaction;
pub use view::RedbTransactionView;
