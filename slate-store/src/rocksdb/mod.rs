//! RocksDB: a folder, an LSM tree, writers at once. All keyspaces lie in one column family, each behind its number.
//!
//! # Transactions
//!
//! A transaction takes a snapshot when it begins and keeps its writes to itself, in order, to be laid over the snapshot where
//! it reads what it wrote. When it commits, each key that it wrote or guarded is compared with what was committed since, and
//! its writes go to RocksDB as one batch: see `commits`. They are not RocksDB's optimistic transactions, which index, copy
//! and lock each key on its own, at several times what it costs to store it.
//!
//! What commits are compared with lies in memory, a hash for each key, while transactions are open. One that was open while
//! others wrote four million keys, or made 300,000 small commits, cannot be checked any longer and fails with
//! [`Conflict`](crate::Error::Conflict) too, as one that has to be run again.
//!
//! Dropping a keyspace is a range delete of RocksDB's, outside transactions. It conflicts with the open transactions that
//! used the keyspace.
//!
//! # Durability
//!
//! Each commit is in the write-ahead log, in the operating system's hands, when it becomes visible: a crash of the process
//! loses none. A [`Sync`](crate::Durability::Sync) commit then waits until the log is on the device, and those that wait at
//! the same time share the trip: see `log`. After a power cut, what was not synced is lost from the log's end.

mod backup;
mod commits;
mod cursor;
mod error;
mod folder;
mod handle;
mod iterate;
mod key;
mod layout_version;
mod log;
mod open;
mod options;
mod overlay;
mod point_reader;
mod snapshot;
mod stepping_reader;
mod store;
mod transaction;
mod tuning;
mod view;
mod writer;
mod writes;
mod written;

pub use cursor::{RocksCursor, RocksTransactionCursor};
pub use options::{Access, Options};
pub use point_reader::{RocksPointReader, RocksTransactionPointReader};
pub use snapshot::RocksSnapshot;
pub use store::RocksStore;
pub use transaction::RocksTransaction;
pub use view::RocksTransactionView;
