use std::{
    hash::{BuildHasher, Hasher},
    sync::Arc,
};

use ahash::RandomState;
use quick_cache::sync::{Cache, DefaultLifecycle};

use super::{
    RowReader,
    marks::Marks,
    row::{Row, RowWeight},
};
use crate::{
    Keyspace,
    moments::{Moment, Writing},
};

/// Values kept, found by hashes of their keys. Of two keys with one hash, one is kept. Clones share them.
#[derive(Clone)]
pub(crate) struct RowCache(Arc<Inner>);

struct Inner {
    rows: Cache<u64, Row, RowWeight, RandomState>,
    marks: Marks,
    hasher: RandomState,
    /// Longer values are not kept.
    longest: usize,
}

/// To keep a longer value costs as much as to find it.
const LONGEST: usize = 16 << 10;

/// What a row is guessed to take, for how many of them there is to be room.
const TYPICAL: usize = 512;

impl RowCache {
    /// One that takes about so many bytes at most.
    pub(crate) fn new(bytes: usize) -> Self {
        let rows = bytes / TYPICAL;
        let marks = Marks::new(rows);
        let capacity = u64::try_from(bytes.saturating_sub(marks.bytes())).unwrap_or(u64::MAX);
        let hasher = RandomState::new();
        let rows = Cache::with(rows, capacity, RowWeight, hasher.clone(), DefaultLifecycle::default());
        // One that took much of its part of the cache would drive the others out.
        let longest = usize::try_from(rows.shard_capacity() / 8).map_or(LONGEST, |most| most.min(LONGEST));
        Self(Arc::new(Inner { rows, marks, hasher, longest }))
    }

    /// Where a snapshot stands that is opened after this call.
    pub(crate) fn moment(&self) -> Moment {
        self.0.marks.moment()
    }

    /// One who reads a keyspace as a snapshot of that moment sees it.
    pub(crate) fn reader(&self, keyspace: Keyspace, moment: Moment) -> RowReader {
        RowReader::new(self.clone(), keyspace, moment)
    }

    /// A key as commits name it.
    pub(crate) fn hash(&self, keyspace: Keyspace, key: &[u8]) -> u64 {
        let mut hasher = self.0.hasher.build_hasher();
        hasher.write_u32(keyspace.0);
        hasher.write(key);
        hasher.finish()
    }

    /// Notes a commit that writes the keys of these hashes: see [`Moments::begin`](crate::moments::Moments::begin).
    pub(crate) fn writing(&self, hashes: &[u64]) -> Writing<'_> {
        self.0.marks.writing(hashes)
    }

    /// The same of one that may write any key.
    pub(crate) fn writing_any(&self) -> Writing<'_> {
        self.0.marks.writing_any()
    }

    /// About the bytes that are taken.
    #[cfg(feature = "rocksdb")]
    pub(crate) fn bytes(&self) -> u64 {
        self.0.rows.weight().saturating_add(u64::try_from(self.0.marks.bytes()).unwrap_or(u64::MAX))
    }

    /// Of several keys, those that share their marks with none before them: nothing that becomes of one disturbs another.
    #[cfg(test)]
    pub(super) fn undisturbed<'k>(&self, keyspace: Keyspace, keys: impl Iterator<Item = &'k [u8]>) -> Vec<&'k [u8]> {
        let mut taken = std::collections::BTreeSet::new();
        keys.filter(|key| taken.insert(self.0.marks.index(self.hash(keyspace, key)))).collect()
    }

    /// Puts a value that nobody stored in the place of one that is kept.
    #[cfg(test)]
    pub(super) fn forge(&self, keyspace: Keyspace, key: &[u8], value: &[u8]) {
        self.0.rows.insert(self.hash(keyspace, key), Row::new(keyspace, key, value, self.moment()));
    }

    /// Whether there is room for any row.
    pub(super) fn has_room(&self) -> bool {
        self.0.longest > 0
    }

    /// The value of a key with that hash, as a snapshot of that moment sees it.
    pub(super) fn find(&self, keyspace: Keyspace, key: &[u8], hash: u64, moment: Moment) -> Option<Row> {
        let row = self.0.rows.get(&hash)?;
        // Looked at last: whatever commit this row or this snapshot has seen left its mark before.
        let is_current = self.0.marks.is_unwritten_since(hash, row.moment.min(moment));
        (is_current && row.is_of(keyspace, key)).then_some(row)
    }

    /// Keeps the value that a snapshot of that moment has under a key, from the second time on that it is asked for: what is
    /// read once and never again costs a look here, and no copy.
    pub(super) fn keep(&self, keyspace: Keyspace, key: &[u8], hash: u64, moment: Moment, value: &[u8]) {
        if value.len() <= self.0.longest && self.0.marks.is_asked_again(hash, moment) {
            self.0.rows.insert(hash, Row::new(keyspace, key, value, moment));
        }
    }
}

#[cfg(test)]
mod tests {
    #[cfg(feature = "rocksdb")]
    use super::super::reader::PATIENCE_OF_WRITER;
    use super::{
        super::{Lookup, reader::PATIENCE},
        *,
    };

    const A: Keyspace = Keyspace(1);
    const B: Keyspace = Keyspace(2);

    fn find(cache: &RowCache, moment: Moment, key: &[u8]) -> Option<Vec<u8>> {
        match cache.reader(A, moment).find(key) {
            Lookup::Found(row) => Some(row.value().to_vec()),
            Lookup::Missed(_) => None,
        }
    }

    fn ask(reader: &mut RowReader, key: &[u8], value: &[u8]) {
        match reader.find(key) {
            Lookup::Found(_) => {}
            Lookup::Missed(missed) => reader.keep(&missed, value),
        }
    }

    /// Asks for a key as often as it takes to be kept.
    fn keep(cache: &RowCache, moment: Moment, key: &[u8], value: &[u8]) {
        let mut reader = cache.reader(A, moment);
        (0..2).for_each(|_| ask(&mut reader, key, value));
    }

    fn commit(cache: &RowCache, key: &[u8]) {
        drop(cache.writing(&[cache.hash(A, key)]));
    }

    #[test]
    fn a_row_is_kept_when_it_is_asked_for_again() {
        let cache = RowCache::new(1 << 20);
        let now = cache.moment();
        ask(&mut cache.reader(A, now), b"k", b"1");
        assert_eq!(find(&cache, now, b"k"), None);
        ask(&mut cache.reader(A, now), b"k", b"1");
        assert_eq!(find(&cache, now, b"k").unwrap(), b"1");
        assert_eq!(find(&cache, now, b"other"), None);
        assert!(matches!(cache.reader(B, now).find(b"k"), Lookup::Missed(_)));
        keep(&cache, now, b"long", &[0; LONGEST + 1]);
        assert_eq!(find(&cache, now, b"long"), None);
        keep(&cache, now, b"", b"");
        assert_eq!(find(&cache, now, b"").unwrap(), b"");
    }

    #[test]
    fn a_row_is_shown_to_those_alone_who_saw_the_same_commits() {
        let cache = RowCache::new(1 << 20);
        let before = cache.moment();
        keep(&cache, before, b"k", b"1");
        let writing = cache.writing(&[cache.hash(A, b"k")]);
        // It may be visible already, and is not yet for certain.
        let during = cache.moment();
        assert_eq!((find(&cache, before, b"k"), find(&cache, during, b"k")), (None, None));
        keep(&cache, during, b"k", b"1 or 2");
        assert_eq!(find(&cache, during, b"k"), None);
        drop(writing);
        let after = cache.moment();
        assert_eq!(find(&cache, after, b"k"), None);
        keep(&cache, before, b"k", b"1");
        assert_eq!((find(&cache, before, b"k"), find(&cache, after, b"k")), (None, None));
        keep(&cache, after, b"k", b"2");
        assert_eq!((find(&cache, before, b"k"), find(&cache, during, b"k")), (None, None));
        assert_eq!(find(&cache, after, b"k").unwrap(), b"2");
        // Commits of other keys leave it alone; one that may have written anything does not.
        let keys: Vec<[u8; 1]> = (0..20).map(|other| [other]).collect();
        let keys = cache.undisturbed(A, [&b"k"[..]].into_iter().chain(keys.iter().map(|key| &key[..])));
        keys.iter().skip(1).for_each(|other| commit(&cache, other));
        assert_eq!(find(&cache, cache.moment(), b"k").unwrap(), b"2");
        drop(cache.writing_any());
        assert_eq!((find(&cache, after, b"k"), find(&cache, cache.moment(), b"k")), (None, None));
    }

    #[test]
    fn a_commit_that_overtakes_another_is_not_taken_for_it() {
        let cache = RowCache::new(1 << 20);
        let first = cache.writing(&[cache.hash(A, b"k")]);
        commit(&cache, b"other");
        // The second is over, the first may become visible at any time.
        let between = cache.moment();
        keep(&cache, between, b"k", b"0");
        assert_eq!(find(&cache, between, b"k"), None);
        drop(first);
        assert_eq!(find(&cache, cache.moment(), b"k"), None);
        keep(&cache, cache.moment(), b"k", b"1");
        assert_eq!(find(&cache, cache.moment(), b"k").unwrap(), b"1");
    }

    #[test]
    fn rows_take_the_room_that_there_is() {
        let cache = RowCache::new(64 << 10);
        for key in 0..1_000_u32 {
            keep(&cache, cache.moment(), &key.to_be_bytes(), &[7; 300]);
        }
        let kept = (0..1_000_u32).filter(|key| find(&cache, cache.moment(), &key.to_be_bytes()).is_some()).count();
        assert!((40..=(64 << 10) / 300).contains(&kept), "{kept}");
        assert!(cache.0.rows.weight() <= 64 << 10);
    }

    #[test]
    fn a_row_of_another_key_with_the_same_hash_is_not_shown() {
        let cache = RowCache::new(1 << 20);
        let now = cache.moment();
        for (keyspace, key) in [(A, &b"other"[..]), (B, b"k")] {
            cache.0.rows.insert(cache.hash(A, b"k"), Row::new(keyspace, key, b"1", now));
            assert_eq!(find(&cache, now, b"k"), None);
        }
    }

    #[test]
    fn who_finds_nothing_gives_up() {
        let cache = RowCache::new(1 << 20);
        let mut reader = cache.reader(A, cache.moment());
        (0..PATIENCE).for_each(|key| ask(&mut reader, &key.to_be_bytes(), b"1"));
        (0..2).for_each(|_| ask(&mut reader, b"k", b"1"));
        assert_eq!(find(&cache, cache.moment(), b"k"), None);
        keep(&cache, cache.moment(), b"k", b"1");
        #[cfg(feature = "rocksdb")]
        {
            let mut writer = cache.reader(A, cache.moment()).of_writer();
            (0..PATIENCE_OF_WRITER).for_each(|key| ask(&mut writer, &key.to_be_bytes(), b"1"));
            assert!(matches!(writer.find(b"k"), Lookup::Missed(_)), "who writes does so sooner");
        }
        let mut reader = cache.reader(A, cache.moment());
        for key in 0..10 * PATIENCE {
            ask(&mut reader, &key.to_be_bytes(), b"1");
            assert!(matches!(reader.find(b"k"), Lookup::Found(_)), "each key found makes up for one that is not");
        }
    }

    #[test]
    fn without_room_nothing_is_kept() {
        for bytes in [0, 1, 200] {
            let none = RowCache::new(bytes);
            keep(&none, none.moment(), b"k", &[1; 100]);
            assert_eq!(find(&none, none.moment(), b"k"), None);
        }
        let boundless = RowCache::new(usize::MAX);
        keep(&boundless, boundless.moment(), b"k", b"1");
        assert_eq!(find(&boundless, boundless.moment(), b"k").unwrap(), b"1");
    }
}
