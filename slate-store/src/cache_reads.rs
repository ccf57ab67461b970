/// How often values were read by key from the cache in front of a store, and how often from the store itself; see
/// [`Store::cache_reads`](crate::Store::cache_reads).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheReads {
    /// Reads that the cache answered.
    pub hits: u64,
    /// Reads that the store answered. Reads that bypass the cache do not count.
    pub misses: u64,
}
