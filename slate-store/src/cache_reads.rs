/// How often values were read by key from the cache in front of a store, and how often from the store itself, and what the
/// store read from its files; see [`Store::cache_reads`](crate::Store::cache_reads).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheReads {
    /// Reads that the cache answered.
    pub hits: u64,
    /// Reads that the store answered. Reads that bypass the cache do not count.
    pub misses: u64,
    /// The bytes that the store read from its files, because its own cache did not have them. `None` if it does not count
    /// them.
    pub file_bytes: Option<u64>,
}
