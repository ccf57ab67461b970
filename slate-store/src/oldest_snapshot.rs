use std::time::Duration;

use crate::Version;

/// The oldest commit that an open snapshot, cursor or transaction of this process reads, if the database has had later commits. The store
/// retains what those commits replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OldestSnapshot {
    /// The last commit that the snapshot shows.
    pub version: Version,
    /// How long ago the first later commit was made: since then the snapshot retains data that otherwise would be freed. On RocksDB, how long ago
    /// the snapshot was opened, in whole seconds.
    pub age: Duration,
    /// An estimate of the bytes that are retained because of the snapshot. `None` if the store does not know.
    ///
    /// The kind of estimate depends on the store. On redb, an upper bound: the bytes of pages written since, because redb frees no page that was
    /// replaced after the oldest snapshot was opened, and at most the length of the file. In memory, an upper bound: the bytes replaced since and
    /// those of the nodes that were copied for that, and at most the bytes of everything that the snapshot shows. On RocksDB, an estimate: the keys
    /// and values that were written since, and at most the size of the database; a deleted key counts as much as an average entry.
    pub held_bytes: Option<u64>,
}
