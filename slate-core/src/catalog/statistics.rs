use slate_query::{
    key,
    pattern::KeyPattern,
    raw::{Doc, Kind, Value, Writer},
};
use slate_store::{Bounds, Cursor, Edge, Keyspace, View};

use super::ByteRange;
use crate::Result;

/// What a keyspace held when it was last looked through: how many keys, and some of them at equal distances.
///
/// It is looked through again when the collection has grown or shrunk by half, by the commit that makes it so; between
/// those it may be off by as much. The same writes make the same statistics on every store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyStatistics {
    pub(crate) keys: u64,
    /// Beginnings of keys, ascending: about as many keys lie between one and the next everywhere.
    sample: Vec<Box<[u8]>>,
}

/// So many stretches of equal size a keyspace is seen as.
const STRETCHES: u64 = 64;

/// So much of a key is kept.
const KEPT: usize = 48;

impl KeyStatistics {
    /// Looks through a keyspace. Cost: every key.
    pub(crate) fn gather(view: &impl View, keyspace: Keyspace) -> Result<Self> {
        let mut sample: Vec<Box<[u8]>> = Vec::new();
        let (mut keys, mut stride) = (0u64, 1u64);
        let mut cursor = view.cursor(keyspace, Bounds::default())?;
        let mut more = cursor.seek(Edge::First)?;
        while more {
            if keys.is_multiple_of(stride) {
                if sample.len() as u64 == 2 * STRETCHES {
                    // Twice as many as wanted: every second is left, and from here on taken.
                    let mut place = 0;
                    sample.retain(|_| {
                        place += 1;
                        place % 2 == 1
                    });
                    stride *= 2;
                }
                if keys.is_multiple_of(stride) {
                    sample.extend(cursor.current().map(|(key, _)| key.get(..KEPT).unwrap_or(key).into()));
                }
            }
            keys += 1;
            more = cursor.step_forward()?;
        }
        Ok(Self { keys, sample })
    }

    /// About how many keys lie within the ranges.
    pub(crate) fn estimate(&self, ranges: &[ByteRange]) -> u64 {
        let Some(stretches) = u64::try_from(self.sample.len()).ok().filter(|&stretches| stretches > 0) else {
            return 0;
        };
        let sampled = ranges.iter().map(|range| self.sampled(range).len()).sum::<usize>() as u64;
        // A range between two samples holds some part of a stretch.
        sampled.max(1).saturating_mul(self.keys) / stretches
    }

    /// The keys of the sample that lie within a range.
    fn sampled(&self, range: &ByteRange) -> &[Box<[u8]>] {
        let from = self.sample.partition_point(|key| **key < *range.start);
        let rest = self.sample.get(from..).unwrap_or_default();
        let Some(end) = range.end.as_deref() else { return rest };
        // Most ranges are narrow.
        let within = match rest.first() {
            Some(first) if **first < *end => rest.partition_point(|key| **key < *end),
            _ => 0,
        };
        rest.get(..within).unwrap_or_default()
    }

    /// About how many keys share the first `fields` values of an index: what a sort by those leaves to be put in order
    /// at a time.
    pub(crate) fn group(&self, pattern: &KeyPattern, fields: usize) -> u64 {
        let mut groups: Vec<&[u8]> = self.sample.iter().map(|key| leading(key, pattern, fields)).collect();
        groups.dedup();
        self.keys / u64::try_from(groups.len()).unwrap_or(u64::MAX).max(1)
    }

    pub(super) fn read(doc: Doc<'_>) -> Option<Self> {
        let keys = doc.get("keys").and_then(Value::as_i64).and_then(|keys| u64::try_from(keys).ok())?;
        let sample = doc.get("sample").and_then(Value::as_array)?;
        let sample = sample.values().filter_map(|value| value.as_binary().map(|(_, key)| key.into())).collect();
        Some(Self { keys, sample })
    }

    pub(super) fn write(&self, writer: &mut Writer, name: &str) {
        writer.open_document(name.as_bytes());
        let keys = i64::try_from(self.keys).unwrap_or(i64::MAX);
        writer.append(b"keys", Value::new(Kind::Int64, &keys.to_le_bytes()));
        writer.open_array(b"sample");
        for (place, key) in self.sample.iter().enumerate() {
            // `KEPT` bytes at most: the length fits.
            let length = i32::try_from(key.len()).unwrap_or_default().to_le_bytes();
            let binary = [&length[..], &[0], key].concat();
            writer.append(place.to_string().as_bytes(), Value::new(Kind::Binary, &binary));
        }
        writer.close();
        writer.close();
    }
}

/// The first values of a key, or all that is kept of it where it was cut within them.
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
    use slate_store::{Durability, Isolation, Store, Transaction, memory::MemoryStore};

    use super::*;

    #[test]
    fn an_estimate_is_off_by_at_most_two_strides() {
        for keys in [0_u32, 1, 2, 63, 64, 65, 128, 129, 1_000, 5_000] {
            let store = MemoryStore::default();
            let mut transaction = store.begin(Isolation::Snapshot, std::time::Duration::ZERO).unwrap();
            for key in 0..keys {
                transaction.put(Keyspace(1), &key.to_be_bytes(), &[]).unwrap();
            }
            transaction.commit(Durability::Deferred).unwrap();
            let statistics = KeyStatistics::gather(&store.snapshot().unwrap(), Keyspace(1)).unwrap();
            let bounds = [0_u32, 1, 7, 100, 500, 1_001, 4_999, 6_000];
            for (start, end) in bounds.into_iter().flat_map(|start| bounds.into_iter().map(move |end| (start, end))) {
                let range = ByteRange { start: start.to_be_bytes().into(), end: Some(end.to_be_bytes().into()) };
                let real = u64::from(end.min(keys).saturating_sub(start));
                let estimate = statistics.estimate(&[range]);
                let allowed = u64::from(keys) * 2 / STRETCHES + 2;
                assert!(estimate.abs_diff(real) <= allowed, "{start} to {end} of {keys}: {estimate}");
            }
            assert_eq!(statistics.estimate(&[ByteRange::default()]), u64::from(keys));
        }
    }
}
