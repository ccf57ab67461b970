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
    /// About how many bytes are retained because of the snapshot. `None` if the store cannot tell. On redb: the bytes of pages
    /// written since, because redb frees no page that was replaced after the oldest snapshot was opened.
    pub held_bytes: Option<u64>,
}
