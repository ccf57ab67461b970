//! RocksDB: an LSM tree in a folder, with concurrent writers. All keyspaces are in one column family; each key is
//! prefixed with the number of its keyspace.
//!
//! A commit is one batch of RocksDB: see `writer`. [`Optimistic`](crate::Optimistic) adds the transactions; RocksDB's own optimistic
//! transactions are not used, because they index, copy and lock each key separately. Dropping a keyspace is a range delete.
//!
//! # Durability
//!
//! A commit is written to the write-ahead log before it becomes visible, so a crash of the process loses none. A [`Sync`](crate::Durability::Sync)
//! commit then waits until the log is synced. Concurrent commits share a sync; RocksDB itself would sync once for each caller. A power failure
//! loses the commits after the last sync.

mod backup;
mod bytes_read;
mod cursor;
mod damaged_log;
mod error;
mod folder;
mod handle;
mod iterate;
mod key;
mod layout_version;
mod open;
mod options;
mod point_reader;
mod snapshot;
mod stepping_reader;
mod store;
mod tuning;
mod writer;
mod written;

pub use cursor::RocksCursor;
pub use options::Options;
pub use point_reader::RocksPointReader;
pub use snapshot::RocksSnapshot;
pub use store::{LocalRocks, RocksStore};
