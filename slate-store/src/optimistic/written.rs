use std::{
    collections::{BTreeMap, btree_map},
    ops::Bound,
    slice,
};

use crate::{Bounds, Write};

/// A transaction's writes to one keyspace in key order, each key once.
pub(super) enum Written {
    /// Sorted writes. Used as long as each further key is greater than all before it.
    Run(OrderedRun),
    /// Used after any other write, or the deletion of a range with writes. Needs more memory and time per key.
    Tree(BTreeMap<Box<[u8]>, Option<Box<[u8]>>>),
}

/// Unsorted writes in the order in which they were made, stored end to end. Most transactions only collect writes and
/// commit them.
#[derive(Default)]
pub(super) struct Run {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

/// Writes in key order, each key once.
#[derive(Default)]
pub(super) struct OrderedRun(Run);

/// The position of a key, its length, and the length of the value after it.
struct Entry {
    start: usize,
    key: usize,
    /// `None` if the key was deleted.
    value: Option<usize>,
}

/// The writes within a range of keys, consumed from both ends.
pub(super) struct Range<'w>(Rest<'w>);

enum Rest<'w> {
    /// In a sorted run: its bytes and the entries.
    Run(&'w [u8], slice::Iter<'w, Entry>),
    Tree(btree_map::Range<'w, Box<[u8]>, Option<Box<[u8]>>>),
}

impl Default for Written {
    fn default() -> Self {
        Self::Run(OrderedRun::default())
    }
}

impl Written {
    pub(super) fn write(&mut self, key: &[u8], value: Option<&[u8]>) {
        if let Self::Run(run) = self {
            if run.last().is_none_or(|(last, _)| last < key) {
                run.0.push(key, value);
                return;
            }
            *self = Self::Tree(run.0.iter().map(|(key, value)| (key.into(), value.map(Box::from))).collect());
        }
        if let Self::Tree(tree) = self {
            tree.insert(key.into(), value.map(Box::from));
        }
    }

    /// Removes the writes within `bounds`, which must not be empty.
    pub(super) fn remove(&mut self, bounds: Bounds<'_>) {
        let within = (bounds.lower(), bounds.upper());
        if self.range(within).next().is_none() {
            return;
        }
        let kept = self.iter().filter(|(key, _)| !bounds.contains(key));
        *self = Self::Tree(kept.map(|(key, value)| (key.into(), value.map(Box::from))).collect());
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Run(run) => run.0.entries.len(),
            Self::Tree(tree) => tree.len(),
        }
    }

    /// Returns the write to this key: the inner `None` for a delete, the outer one if there is none.
    pub(super) fn get(&self, key: &[u8]) -> Option<Option<&[u8]>> {
        match self {
            Self::Run(run) => run.get(key),
            Self::Tree(tree) => tree.get(key).map(Option::as_deref),
        }
    }

    pub(super) fn iter(&self) -> Range<'_> {
        self.range((Bound::Unbounded, Bound::Unbounded))
    }

    /// Returns the writes within these bounds. The lower bound must not exceed the upper bound.
    pub(super) fn range(&self, (from, to): (Bound<&[u8]>, Bound<&[u8]>)) -> Range<'_> {
        match self {
            Self::Run(run) => run.range(from, to),
            Self::Tree(tree) => Range(Rest::Tree(tree.range::<[u8], _>((from, to)))),
        }
    }
}

impl Run {
    /// Reserves memory for these writes.
    pub(super) fn reserve(&mut self, writes: &[Write<'_>]) {
        self.entries.reserve(writes.len());
        self.bytes.reserve(writes.iter().map(|(key, value)| key.len() + value.map_or(0, <[u8]>::len)).sum());
    }

    pub(super) fn push(&mut self, key: &[u8], value: Option<&[u8]>) {
        self.entries.push(Entry { start: self.bytes.len(), key: key.len(), value: value.map(<[u8]>::len) });
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value.unwrap_or_default());
    }

    /// Sorts the writes by key. Of writes to the same key only the last one remains.
    pub(super) fn put_in_order(mut self) -> OrderedRun {
        let Self { bytes, entries } = &mut self;
        let key = |entry: &Entry| entry.of(bytes).0;
        if !entries.is_sorted_by(|a, b| key(a) < key(b)) {
            // The sort is stable, and the reversed order puts the last write to a key first.
            entries.reverse();
            entries.sort_by(|a, b| key(a).cmp(key(b)));
            entries.dedup_by(|entry, before| key(entry) == key(before));
        }
        OrderedRun(self)
    }

    fn iter(&self) -> impl Iterator<Item = Write<'_>> {
        self.entries.iter().map(|entry| entry.of(&self.bytes))
    }
}

impl OrderedRun {
    fn last(&self) -> Option<Write<'_>> {
        self.0.entries.last().map(|entry| entry.of(&self.0.bytes))
    }

    fn get(&self, key: &[u8]) -> Option<Option<&[u8]>> {
        // Reads and writes are often both ascending: then most keys that are read are greater than all written ones.
        self.last().filter(|(last, _)| *last >= key)?;
        let at = self.0.entries.binary_search_by(|entry| entry.of(&self.0.bytes).0.cmp(key)).ok()?;
        self.0.entries.get(at).map(|entry| entry.of(&self.0.bytes).1)
    }

    fn range(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Range<'_> {
        let below = |key: &[u8]| self.0.entries.partition_point(|entry| entry.of(&self.0.bytes).0 < key);
        let up_to = |key: &[u8]| self.0.entries.partition_point(|entry| entry.of(&self.0.bytes).0 <= key);
        let start = match from {
            Bound::Unbounded => 0,
            Bound::Included(from) => below(from),
            Bound::Excluded(from) => up_to(from),
        };
        let end = match to {
            Bound::Unbounded => self.0.entries.len(),
            Bound::Included(to) => up_to(to),
            Bound::Excluded(to) => below(to),
        };
        Range(Rest::Run(&self.0.bytes, self.0.entries.get(start..end).unwrap_or_default().iter()))
    }
}

impl Entry {
    fn of<'b>(&self, bytes: &'b [u8]) -> Write<'b> {
        let (key, rest) = bytes.get(self.start..).and_then(|from| from.split_at_checked(self.key)).unwrap_or_default();
        (key, self.value.and_then(|length| rest.get(..length)))
    }
}

impl<'w> Iterator for Range<'w> {
    type Item = Write<'w>;

    fn next(&mut self) -> Option<Write<'w>> {
        match &mut self.0 {
            Rest::Run(bytes, entries) => entries.next().map(|entry| entry.of(bytes)),
            Rest::Tree(range) => range.next().map(|(key, value)| (&**key, value.as_deref())),
        }
    }
}

impl DoubleEndedIterator for Range<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Rest::Run(bytes, entries) => entries.next_back().map(|entry| entry.of(bytes)),
            Rest::Tree(range) => range.next_back().map(|(key, value)| (&**key, value.as_deref())),
        }
    }
}

#[cfg(test)]
mod tests {
    use slate_store_conformance::Random;

    use super::*;

    #[test]
    fn writes_are_found_in_key_order_whether_or_not_keys_were_ascending() {
        let mut random = Random::new(7);
        let key = |random: &mut Random| [u8::try_from(random.below(40)).unwrap()];
        for round in 0..200 {
            let mut expected: BTreeMap<[u8; 1], Option<[u8; 1]>> = BTreeMap::new();
            let mut written = Written::Run(OrderedRun::default());
            for step in 0..20_u8 {
                let key = if round % 2 == 0 { [2 * step] } else { key(&mut random) };
                let value = (random.below(4) > 0).then_some([step]);
                written.write(&key, value.as_ref().map(|value| &value[..]));
                expected.insert(key, value);
            }
            assert!(matches!(written, Written::Run(_)) == (round % 2 == 0));
            let entry = |(key, value): (&[u8; 1], &Option<[u8; 1]>)| (key.to_vec(), value.map(|value| value.to_vec()));
            let found = |(key, value): Write<'_>| (key.to_vec(), value.map(<[u8]>::to_vec));
            for at in 0..41 {
                let own = expected.get(&[at]).map(|value| value.as_ref().map(|value| &value[..]));
                assert_eq!(written.get(&[at]), own);
                for bound in [Bound::Included, Bound::Excluded] {
                    let place = bound([at]);
                    let bytes = place.as_ref().map(|key| &key[..]);
                    let up = written.range((bytes, Bound::Unbounded)).map(found);
                    assert!(up.eq(expected.range((place, Bound::Unbounded)).map(entry)));
                    let down = written.range((Bound::Unbounded, bytes)).rev().map(found);
                    assert!(down.eq(expected.range((Bound::Unbounded, place)).rev().map(entry)));
                }
            }
        }
    }
}
