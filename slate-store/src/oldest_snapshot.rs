use std::time::Duration;

use crate::Version;

/// The oldest commit that an open snapshot, cursor or transaction of this process reads, if the database has had later commits. The store
/// retains what those commits replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OldestSnapshot {
    /// The last commit that the snapshot shows.
    pub version: Version,
    /// How long ago a later commit was made: since then the snapshot retains data that otherwise would be freed. On RocksDB, how long
    /// ago the snapshot was opened, in whole seconds.
    pub age: Duration,
    /// About how many bytes are retained because of the snapshot. `None` if the store cannot tell.
    ///
    /// Each store returns a bound. On redb: the bytes of pages written since, because redb frees no page that was replaced after the oldest
    /// snapshot was opened, and at most the length of the file. In memory: the bytes of what was replaced since and of the nodes that were
    /// copied for that, and at most what all that the snapshot shows takes. On RocksDB: the keys and values that were written since, and at
    /// most all that the database takes; a deleted key counts as much as an entry has on average, so there it is an estimate.
    pub held_bytes: Option<u64>,
}
