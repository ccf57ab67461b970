use crate::{
    counts::{CountCache, NotedKeys},
    moments::Writing,
    row_cache::RowCache,
};

/// What a store keeps of what was read, beside its library's own cache: each commit is told to all of it.
pub(crate) struct Kept {
    pub(crate) rows: RowCache,
    pub(crate) counts: CountCache,
}

impl Kept {
    /// Of the memory that a store may keep what it read in, what is for this: an eighth for rows, a sixty-fourth for counts.
    pub(crate) fn share(cache_bytes: usize) -> usize {
        rows(cache_bytes) + counts(cache_bytes)
    }

    /// Of a store that may keep what it read in so much memory.
    pub(crate) fn of_cache(cache_bytes: usize) -> Self {
        Self { rows: RowCache::new(rows(cache_bytes)), counts: CountCache::new(counts(cache_bytes)) }
    }

    /// Notes a commit that writes these keys, by their hashes and as counts know them: see
    /// [`Moments::begin`](crate::moments::Moments::begin).
    pub(crate) fn writing(&self, hashes: &[u64], keys: &NotedKeys) -> Writing<'_> {
        let writing = self.rows.writing(hashes);
        self.counts.writing(keys, &writing);
        writing
    }

    /// The same of one whose keys nobody knows but by their keyspaces.
    pub(crate) fn writing_any(&self, keys: &NotedKeys) -> Writing<'_> {
        let writing = self.rows.writing_any();
        self.counts.writing(keys, &writing);
        writing
    }

    /// About the bytes that are taken.
    #[cfg(feature = "rocksdb")]
    pub(crate) fn bytes(&self) -> u64 {
        self.rows.bytes().saturating_add(self.counts.bytes())
    }
}

fn rows(cache_bytes: usize) -> usize {
    cache_bytes / 8
}

fn counts(cache_bytes: usize) -> usize {
    cache_bytes / 64
}
