//! RocksDB: a folder, an LSM tree, writers at once. All keyspaces lie in one column family, each behind its number.
//!
//! # Transactions
//!
//! They are RocksDB's optimistic ones: a transaction takes a snapshot when it begins, keeps its writes to itself, and when
//! it commits RocksDB compares each key that it wrote or guarded with what was committed since. It does so in memory, and
//! for that keeps writes it has put into files already. A transaction that was open for longer than these reach back
//! cannot be checked and fails with [`Conflict`](crate::Error::Conflict) too, as one that has to be run again.
//!
//! That check does not see range deletes, and RocksDB's transactions have none. Dropping a keyspace is one, outside them;
//! which transactions it disturbs is decided here, by a note of each drop that commits are compared with.
//!
//! # Durability
//!
//! Each commit is in the write-ahead log, in the operating system's hands, when it becomes visible: a crash of the process
//! loses none. A [`Sync`](crate::Durability::Sync) commit then waits until the log is on the device, and those that wait at
//! the same time share the trip: see `log`. After a power cut, what was not synced is lost from the log's end.

mod backup;
mod commits;
mod cursor;
mod drops;
mod error;
mod folder;
mod handle;
mod iterate;
mod key;
mod log;
mod mark;
mod neighbours;
mod open;
mod options;
mod overlay;
mod points;
mod snapshot;
mod store;
mod transaction;
mod tuning;
mod view;
mod writer;
mod writes;

pub use cursor::{RocksCursor, RocksTransactionCursor};
pub use options::{Access, Options};
pub use points::{RocksPoints, RocksTransactionPoints};
pub use snapshot::RocksSnapshot;
pub use store::RocksStore;
pub use transaction::RocksTransaction;
pub use view::RocksTransactionView;
