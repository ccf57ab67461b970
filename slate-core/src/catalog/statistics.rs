//! Statistics: the number of keys in a keyspace and a sample of them, from which the planner estimates the number of
//! keys within bounds.
//!
//! Statistics are derived from the data and never affect the correctness of a result. Each collection's are stored
//! under a separate key, so writing them does not conflict with user transactions.

use slate_query::{
    key,
    pattern::KeyPattern,
    raw::{Doc, Kind, Value, Writer},
};
use slate_store::{Bounds, Cursor, Edge, Guard, Keyspace, Transaction, TransactionExt, View};

use super::{CATALOG, Catalog, CollectionInfo, definition_key, index, keys};
use crate::{Result, key_range::KeyRange};

/// The statistics of a collection: of its records, and of each index that was complete when they were gathered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CollectionStatistics {
    pub(super) records: KeyStatistics,
    pub(super) indexes: Vec<(Keyspace, KeyStatistics)>,
}

/// The statistics of a keyspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyStatistics {
    pub(crate) keys: u64,
    /// Key prefixes in ascending order, with about as many keys between any two adjacent ones. Empty if the
    /// distribution is unknown.
    sample: Vec<Box<[u8]>>,
}

/// The minimum sample size of a keyspace with more keys than this; the maximum is twice as large. The error of the estimate
/// for a range is at most 2 / `SAMPLE_SIZE` of the keys.
const SAMPLE_SIZE: usize = 64;

/// The length of a key prefix in a sample, in bytes: enough to distinguish most keys.
const SAMPLED_BYTES: usize = 48;

impl CollectionStatistics {
    /// Gathers the statistics of a collection that has grown by `growth` records since its last statistics.
    ///
    /// Samples all keys of a keyspace with at most `max_keys`. In a larger one extends the last sample by up to
    /// `max_keys` keys after its end, and scales the number of keys with the collection's growth; without a last
    /// sample, the distribution stays unknown.
    pub(crate) fn gather(view: &impl View, collection: &CollectionInfo, growth: i64, max_keys: u64) -> Result<Self> {
        let last = collection.statistics.as_deref();
        let last_records = last.map(|last| &last.records);
        let known = last_records.map_or(0, |last| last.keys);
        let records = known.saturating_add_signed(growth);
        let gather = |keyspace, last: Option<&KeyStatistics>, expected: u64| {
            let all = if expected > max_keys { None } else { KeyStatistics::read_all(view, keyspace, max_keys)? };
            match (all, last) {
                (Some(all), _) => Ok(all),
                (None, Some(last)) => last.extended(view, keyspace, expected, max_keys),
                (None, None) => Ok(KeyStatistics { keys: expected.max(max_keys), sample: Vec::new() }),
            }
        };
        let records = gather(collection.records, last_records, records)?;
        let indexes = collection.indexes.iter().map(|index| {
            let last = collection.index_statistics(index);
            let in_proportion = |last: &KeyStatistics| {
                let keys = u128::from(last.keys) * u128::from(records.keys) / u128::from(known.max(1));
                u64::try_from(keys).unwrap_or(u64::MAX)
            };
            let expected = last.map_or(records.keys, in_proportion);
            Ok((index.keyspace, gather(index.keyspace, last, expected)?))
        });
        Ok(Self { indexes: indexes.collect::<Result<_>>()?, records })
    }

    /// Writes the statistics and their version. Conflicts only with other transactions that write statistics, and with
    /// a change of the collection's definition.
    pub(crate) fn store(&self, transaction: &mut impl Transaction, collection: &CollectionInfo) -> Result<()> {
        let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_be_bytes);
        let version = transaction.view().get(CATALOG, keys::STATISTICS_VERSION, number)?.unwrap_or_default();
        transaction.guard(CATALOG, &definition_key(&collection.name), Guard::Shared)?;
        transaction.put(CATALOG, &keys::statistics(collection.records), &self.write())?;
        Ok(transaction.put(CATALOG, keys::STATISTICS_VERSION, &(version + 1).to_be_bytes())?)
    }

    pub(super) fn of_index(&self, index: Keyspace) -> Option<&KeyStatistics> {
        self.indexes.iter().find(|(keyspace, _)| *keyspace == index).map(|(_, statistics)| statistics)
    }

    pub(super) fn read(doc: Doc<'_>) -> Option<Self> {
        let records = doc.get("records").and_then(Value::as_document).and_then(KeyStatistics::read)?;
        let indexes = doc.get("indexes").and_then(Value::as_array)?;
        let index = |value: Value<'_>| {
            let doc = value.as_document()?;
            Some((index::keyspace(doc, "keyspace")?, KeyStatistics::read(doc)?))
        };
        Some(Self { records, indexes: indexes.values().filter_map(index).collect() })
    }

    fn write(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.open_document(b"records");
        self.records.write(&mut writer);
        writer.close();
        writer.open_array(b"indexes");
        for (place, (keyspace, statistics)) in self.indexes.iter().enumerate() {
            writer.open_document(place.to_string().as_bytes());
            index::put_keyspace(&mut writer, "keyspace", *keyspace);
            statistics.write(&mut writer);
            writer.close();
        }
        writer.close();
        writer.finish()
    }
}

/// Reads the statistics of all collections into `catalog`.
pub(super) fn read_all(view: &impl View, catalog: &mut Catalog) -> Result<()> {
    let (start, end) = keys::all_statistics();
    let mut cursor = view.cursor(CATALOG, Bounds { start: Some(&start), end: Some(&end) })?;
    let mut more = cursor.seek(Edge::First)?;
    while more {
        if let Some((key, value)) = cursor.current()
            && let Some(records) = keys::statistics_keyspace(key)
        {
            catalog.set_statistics(records, CollectionStatistics::read(Doc::new(value)));
        }
        more = cursor.step_forward()?;
    }
    Ok(())
}

impl KeyStatistics {
    /// Reads every key. `None` if the keyspace has more than `max_keys`.
    fn read_all(view: &impl View, keyspace: Keyspace, max_keys: u64) -> Result<Option<Self>> {
        let mut sampler = Sampler { statistics: Self::default(), stride: 1 };
        let is_end = sampler.walk(view, keyspace, &[], max_keys)? == Walked::ToEnd;
        Ok(is_end.then_some(sampler.statistics))
    }

    /// Returns the statistics of a keyspace that now has about `keys` keys. Extends the sample by at most `max_keys`
    /// keys after its last one, and assumes that the other new keys are distributed like the old ones.
    fn extended(&self, view: &impl View, keyspace: Keyspace, keys: u64, max_keys: u64) -> Result<Self> {
        let mut sample = self.sample.clone();
        let (size, Some(last)) = (sample.len() as u64, sample.pop()) else { return Ok(Self { keys, sample }) };
        let bounds = Bounds { start: Some(&last), end: None };
        let behind = view.count(keyspace, bounds, |counted| counted < max_keys)?.unwrap_or(max_keys);
        let appended = behind.saturating_sub(self.keys / size);
        let stride = (keys.saturating_sub(appended) / size).max(1);
        let mut sampler = Sampler { statistics: Self { keys: (size - 1) * stride, sample }, stride };
        sampler.walk(view, keyspace, &last, max_keys)?;
        Ok(Self { keys, ..sampler.statistics })
    }

    /// Estimates the number of keys within the ranges.
    pub(crate) fn estimate(&self, ranges: &[KeyRange]) -> u64 {
        let size = if self.sample.is_empty() { SAMPLE_SIZE } else { self.sample.len() };
        let sampled = ranges.iter().map(|range| self.sampled(range)).sum::<usize>();
        // A range between two sampled keys is estimated as one stride.
        (sampled.max(1) as u64).saturating_mul(self.keys) / size as u64
    }

    /// Returns the number of sampled keys within a range.
    fn sampled(&self, range: &KeyRange) -> usize {
        let below = |end: &[u8]| self.sample.partition_point(|key| **key < *end);
        let end = range.end.as_deref().map_or(self.sample.len(), below);
        end.saturating_sub(below(&range.start))
    }

    /// Estimates the number of keys that share the first `fields` values of an index: the group size of a sort within
    /// groups.
    pub(crate) fn group(&self, pattern: &KeyPattern, fields: usize) -> u64 {
        let mut groups: Vec<&[u8]> = self.sample.iter().map(|key| leading(key, pattern, fields)).collect();
        groups.dedup();
        self.keys / u64::try_from(groups.len()).unwrap_or(u64::MAX).max(1)
    }

    fn read(doc: Doc<'_>) -> Option<Self> {
        let keys = doc.get("keys").and_then(Value::as_i64).and_then(|keys| u64::try_from(keys).ok())?;
        let sample = doc.get("sample").and_then(Value::as_array)?;
        let sample = sample.values().filter_map(|value| value.as_binary().map(|(_, key)| key.into())).collect();
        Some(Self { keys, sample })
    }

    fn write(&self, writer: &mut Writer) {
        let keys = i64::try_from(self.keys).unwrap_or(i64::MAX);
        writer.append(b"keys", Value::new(Kind::Int64, &keys.to_le_bytes()));
        writer.open_array(b"sample");
        for (place, key) in self.sample.iter().enumerate() {
            // At most `SAMPLED_BYTES`, so the length fits.
            let length = i32::try_from(key.len()).unwrap_or_default().to_le_bytes();
            let binary = [&length[..], &[0], key].concat();
            writer.append(place.to_string().as_bytes(), Value::new(Kind::Binary, &binary));
        }
        writer.close();
    }
}

/// Samples every `stride`-th key. Doubles the stride when the sample would exceed twice [`SAMPLE_SIZE`].
struct Sampler {
    statistics: KeyStatistics,
    stride: u64,
}

/// How a walk ended.
#[derive(PartialEq, Eq)]
enum Walked {
    ToEnd,
    ToLimit,
}

impl Sampler {
    /// Walks over at most `max_keys` keys, from `start` on.
    fn walk(&mut self, view: &impl View, keyspace: Keyspace, start: &[u8], max_keys: u64) -> Result<Walked> {
        let mut cursor = view.cursor(keyspace, Bounds { start: Some(start), end: None })?;
        let mut more = cursor.seek(Edge::First)?;
        for _ in 0..max_keys {
            if !more {
                break;
            }
            if self.statistics.keys.is_multiple_of(self.stride) {
                self.take(cursor.current().map_or(&[], |(key, _)| key));
            }
            self.statistics.keys += 1;
            more = cursor.step_forward()?;
        }
        Ok(if more { Walked::ToLimit } else { Walked::ToEnd })
    }

    fn take(&mut self, key: &[u8]) {
        let sample = &mut self.statistics.sample;
        if sample.len() == 2 * SAMPLE_SIZE {
            let mut place = 0;
            sample.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.stride *= 2;
        }
        if self.statistics.keys.is_multiple_of(self.stride) {
            sample.push(key.get(..SAMPLED_BYTES).unwrap_or(key).into());
        }
    }
}

/// Returns the encoded values of the first `fields` fields of a sampled key, or the whole sampled key if it was cut off
/// before their end.
fn leading<'k>(sampled: &'k [u8], pattern: &KeyPattern, fields: usize) -> &'k [u8] {
    let mut end = 0;
    for (_, direction) in pattern.fields().iter().take(fields) {
        match sampled.get(end..).and_then(|rest| key::skip(rest, *direction)) {
            Some(length) => end += length,
            None => return sampled,
        }
    }
    sampled.get(..end).unwrap_or(sampled)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use slate_store::{Durability, Store, Transaction, TransactionExt, memory::MemoryStore};

    use super::*;

    const RECORDS: Keyspace = Keyspace(1);

    fn put(store: &MemoryStore, keys: std::ops::Range<u32>) {
        let mut transaction = store.begin(Duration::ZERO).unwrap();
        for key in keys {
            transaction.put(RECORDS, &key.to_be_bytes(), &[]).unwrap();
        }
        transaction.commit(Durability::Deferred).unwrap();
    }

    fn check(statistics: &KeyStatistics, keys: u32) {
        let bounds = [0_u32, 1, 7, 100, 500, 1_001, 4_999, 6_000, 9_000];
        for (start, end) in bounds.into_iter().flat_map(|start| bounds.into_iter().map(move |end| (start, end))) {
            let range = KeyRange { start: start.to_be_bytes().into(), end: Some(end.to_be_bytes().into()) };
            let real = u64::from(end.min(keys).saturating_sub(start));
            let estimate = statistics.estimate(&[range]);
            let allowed = u64::from(keys) * 2 / SAMPLE_SIZE as u64 + 2;
            assert!(estimate.abs_diff(real) <= allowed, "{start} to {end} of {keys}: {estimate}");
        }
        assert_eq!(statistics.estimate(&[KeyRange::default()]), u64::from(keys));
    }

    #[test]
    fn an_estimate_is_off_by_at_most_two_strides() {
        for keys in [0, 1, 2, 63, 64, 65, 128, 129, 1_000, 5_000] {
            let store = MemoryStore::default();
            put(&store, 0..keys);
            let collection = CollectionInfo::new("c", RECORDS);
            let gathered = CollectionStatistics::gather(&store.snapshot().unwrap(), &collection, 0, 10_000).unwrap();
            check(&gathered.records, keys);
            assert_eq!(CollectionStatistics::read(Doc::new(&gathered.write())), Some(gathered));
        }
    }

    #[test]
    fn a_keyspace_beyond_the_limit_keeps_its_distribution_when_it_grows_everywhere() {
        let store = MemoryStore::default();
        // Two values, each followed by ascending record keys, as in an index with few distinct values.
        let key = |value: u32, record: u32| (value << 16 | record).to_be_bytes();
        let grow = |records: std::ops::Range<u32>| {
            let mut transaction = store.begin(Duration::ZERO).unwrap();
            for record in records {
                (0..2).for_each(|value| transaction.put(RECORDS, &key(value, record), &[]).unwrap());
            }
            transaction.commit(Durability::Deferred).unwrap();
            store.snapshot().unwrap()
        };
        let first = KeyStatistics::read_all(&grow(0..2_000), RECORDS, 4_000).unwrap().unwrap();
        let extended = first.extended(&grow(2_000..4_000), RECORDS, 8_000, 4_000).unwrap();
        let half = KeyRange { start: Default::default(), end: Some(key(1, 0).into()) };
        let estimate = extended.estimate(&[half]);
        assert!(estimate.abs_diff(4_000) <= 1_000, "{estimate}");
    }

    #[test]
    fn a_collection_beyond_the_limit_extends_its_sample_by_appended_keys() {
        let store = MemoryStore::default();
        let mut collection = CollectionInfo::new("c", RECORDS);
        let mut gathered = 0;
        for keys in [4_000, 6_000, 9_000] {
            put(&store, gathered..keys);
            let growth = i64::from(keys - gathered);
            let statistics =
                CollectionStatistics::gather(&store.snapshot().unwrap(), &collection, growth, 4_000).unwrap();
            check(&statistics.records, keys);
            collection.statistics = Some(statistics.into());
            gathered = keys;
        }
        let unknown =
            CollectionStatistics::gather(&store.snapshot().unwrap(), &CollectionInfo::new("c", RECORDS), 9_000, 4_000);
        assert_eq!(unknown.unwrap().records, KeyStatistics { keys: 9_000, sample: Vec::new() });
    }
}
