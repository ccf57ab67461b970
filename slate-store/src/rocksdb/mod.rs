//! RocksDB: an LSM tree in a folder, with concurrent writers. All keyspaces are in one column family; each key is
//! prefixed with the number of its keyspace.
//!
//! # Transactions
//!
//! A transaction takes a snapshot when it begins and buffers its writes in memory. Its views merge the buffer with the
//! snapshot. The commit checks each written or guarded key against the commits since the snapshot and passes the writes
//! to RocksDB as one batch: see `commits`. RocksDB's own optimistic transactions are not used, because they index, copy
//! and lock each key separately.
//!
//! While transactions are open, the hashes of committed keys are held in memory. A transaction that is open while others
//! write four million keys, or make 300,000 small commits, can no longer be checked and fails with
//! [`Conflict`](crate::Error::Conflict).
//!
//! Dropping a keyspace is a range delete outside transactions. It conflicts with open transactions that wrote to the
//! keyspace or guarded a key in it.
//!
//! # Durability
//!
//! A commit is written to the write-ahead log before it becomes visible, so a crash of the process loses none. A
//! [`Sync`](crate::Durability::Sync) commit then waits until the log is synced; concurrent commits share a sync: see
//! `group_commit`. A power failure loses the commits after the last sync.

mod backup;
mod bytes_read;
mod commits;
mod cursor;
mod error;
mod folder;
mod group_commit;
mod handle;
mod iterate;
mod key;
mod layout_version;
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
mod write_buffer;
mod writer;
mod written;

pub use cursor::{RocksCursor, RocksTransactionCursor};
pub use options::Options;
pub use point_reader::{RocksPointReader, RocksTransactionPointReader};
pub use snapshot::RocksSnapshot;
pub use store::RocksStore;
pub use transaction::RocksTransaction;
pub use view::RocksTransactionView;
