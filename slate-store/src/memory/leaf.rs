use std::{cmp::Ordering, mem, ops::Bound};

use super::{
    key::{Key, Probe},
    value::Value,
};

/// Maximum number of entries of a leaf with inline values, such as those of an index.
pub(super) const MAX_INLINE: usize = if cfg!(test) { 8 } else { 64 };

/// Maximum number of entries of a leaf with shared values. It is smaller, because copying such a leaf increments the reference count of every
/// value, each in a separate cache line.
const MAX_SHARED: usize = MAX_INLINE / 2;

/// Maximum number of writes that are applied one by one. A longer run is merged with the entries in one pass.
const MAX_SINGLE: usize = 4;

/// Spare capacity of a new leaf, in entries. It is small because few leaves grow, but every leaf takes memory.
const SPARE: usize = 4;

/// Approximate memory of an entry beyond the bytes of its key and value: unused bytes of the 32-byte key, the value's
/// pointer and reference counts, and a share of the leaf's spare capacity and of the nodes above it.
const ENTRY_OVERHEAD: u64 = 56;

/// Upper bound of the bytes that the change of one entry copies while a snapshot is open: a leaf, and the nodes above it.
const PATH_BYTES: u64 = 16 << 10;

pub(super) type LeafEntry = (Key, Value);

/// A value to put under a key; `None` deletes the key.
pub(super) type Write = (Key, Option<Value>);

/// The number of entries of a keyspace, and the bytes of their keys and values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) entries: u64,
    pub(super) bytes: u64,
    /// Number of entries ever written or removed, and the bytes of those that were replaced or removed.
    pub(super) ever_changed: u64,
    pub(super) ever_replaced_bytes: u64,
}

impl Extent {
    fn add(&mut self, key: &Key, value: &Value) {
        self.entries += 1;
        self.bytes += bytes(key, value);
        self.ever_changed += 1;
    }

    fn remove(&mut self, key: &Key, value: &Value) {
        self.entries = self.entries.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes(key, value));
        self.ever_changed += 1;
        self.ever_replaced_bytes += bytes(key, value);
    }

    /// Returns the estimated memory of the entries in bytes.
    pub(super) fn in_memory(&self) -> u64 {
        self.bytes.saturating_add(self.entries.saturating_mul(ENTRY_OVERHEAD))
    }

    /// Returns an upper bound of the bytes of this version of a tree that the version `last` lacks; `last` is `None` for a dropped tree.
    pub(super) fn held_beside(&self, last: Option<Self>) -> u64 {
        let Some(last) = last else { return self.in_memory() };
        let changed = last.ever_changed.saturating_sub(self.ever_changed);
        let replaced = last.ever_replaced_bytes.saturating_sub(self.ever_replaced_bytes);
        replaced.saturating_add(changed.saturating_mul(PATH_BYTES)).min(self.in_memory())
    }
}

fn bytes(key: &Key, value: &Value) -> u64 {
    size(key.as_slice().len()) + size(value.len())
}

/// Returns a length in memory as a `u64`, which can represent every length.
pub(super) fn size(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// How a leaf that has become too large is split.
#[derive(Clone, Copy)]
pub(super) enum Split {
    /// All leaves except the last are full: for keys that arrive in ascending order.
    Full,
    /// All leaves have about the same size.
    Even,
}

/// Adjacent entries in the order of their keys.
#[derive(Default)]
pub(super) struct Leaf {
    entries: Vec<LeafEntry>,
}

/// The copy has spare capacity, because a leaf is copied to be written to.
impl Clone for Leaf {
    fn clone(&self) -> Self {
        // Prefetches the reference counts, because incrementing each atomically would wait for one cache miss after
        // another.
        self.entries.iter().for_each(|(_, value)| value.prefetch());
        let mut entries = Vec::with_capacity(self.entries.len() + SPARE);
        entries.extend_from_slice(&self.entries);
        Self { entries }
    }
}

impl Leaf {
    #[inline]
    pub(super) fn entries(&self) -> &[LeafEntry] {
        &self.entries
    }

    /// Prefetches the address and the number of the entries, which every search reads.
    #[inline]
    pub(super) fn prefetch(&self) {
        branches::prefetch_read_data::<Self, 0>(self);
    }

    /// Returns the maximum number of entries of the leaf.
    fn max(&self) -> usize {
        match self.entries.last() {
            Some((_, value)) if value.is_shared() => MAX_SHARED,
            _ => MAX_INLINE,
        }
    }

    pub(super) fn is_overfull(&self) -> bool {
        self.entries.len() > self.max()
    }

    /// Returns whether the leaf should be merged with an adjacent one if they [fit](Self::fits).
    pub(super) fn is_underfull(&self) -> bool {
        self.entries.len() <= self.max() / 4
    }

    /// Returns whether one leaf can hold the entries of both with a quarter free, so that the next writes do not split it again; always if
    /// this leaf is empty.
    pub(super) fn fits(&self, other: &Self) -> bool {
        self.entries.is_empty() || self.entries.len() + other.entries.len() <= self.max() / 4 * 3
    }

    /// Returns the position of the key; as `Err`, the position at which it would be inserted.
    #[inline]
    pub(super) fn find(&self, key: &Probe<'_>) -> Result<usize, usize> {
        // Inlines the comparison and stops where the key is found, neither of which `binary_search_by` does.
        self.find_within(0, self.entries.len(), key)
    }

    /// Searches the entries from position `start` to before `end`.
    #[inline]
    fn find_within(&self, mut start: usize, mut end: usize, key: &Probe<'_>) -> Result<usize, usize> {
        while start < end {
            let middle = start.midpoint(end);
            let Some((other, _)) = self.entries.get(middle) else { break };
            match key.compare(other) {
                Ordering::Less => end = middle,
                Ordering::Equal => return Ok(middle),
                Ordering::Greater => start = middle + 1,
            }
        }
        Err(start)
    }

    /// Returns the same as [`find`](Self::find), but searches from position `from` in steps of doubling length. This is cheap for a key that
    /// is a little above the key at `from`.
    #[inline]
    pub(super) fn find_from(&self, from: usize, key: &Probe<'_>) -> Result<usize, usize> {
        let (mut start, mut step) = (from, 1);
        loop {
            match self.entries.get(start).map(|(other, _)| key.compare(other)) {
                Some(Ordering::Equal) => return Ok(start),
                Some(Ordering::Greater) => {}
                Some(Ordering::Less) | None => break,
            }
            (start, step) = (start + step, 2 * step);
        }
        // The last entry that was compared and is below the key, if any, is at most half a step before `start`.
        let below = start.checked_sub(step / 2).filter(|below| step > 1 && *below >= from);
        self.find_within(below.map_or(0, |below| below + 1), start.min(self.entries.len()), key)
    }

    #[inline]
    pub(super) fn get(&self, key: &Probe<'_>) -> Option<&Value> {
        self.find(key).ok().and_then(|at| self.entries.get(at)).map(|(_, value)| value)
    }

    /// Returns the number of entries with keys below `key`.
    pub(super) fn rank(&self, key: &Probe<'_>) -> usize {
        self.find(key).unwrap_or_else(|at| at)
    }

    /// Returns the entries that are within this lower bound.
    pub(super) fn above(&self, bound: Bound<&[u8]>) -> &[LeafEntry] {
        let start = match bound {
            Bound::Included(key) => self.rank(&Probe::new(key)),
            Bound::Excluded(key) => self.find(&Probe::new(key)).map_or_else(|at| at, |at| at + 1),
            Bound::Unbounded => 0,
        };
        self.entries.get(start..).unwrap_or_default()
    }

    /// Returns the entries that are within this upper bound.
    pub(super) fn below(&self, bound: Bound<&[u8]>) -> &[LeafEntry] {
        let end = match bound {
            Bound::Included(key) => self.find(&Probe::new(key)).map_or_else(|at| at, |at| at + 1),
            Bound::Excluded(key) => self.rank(&Probe::new(key)),
            Bound::Unbounded => self.entries.len(),
        };
        self.entries.get(..end).unwrap_or_default()
    }

    /// Applies writes in ascending order of keys and empties `writes`. Afterwards the leaf may be overfull, underfull
    /// or empty.
    pub(super) fn write(&mut self, writes: &mut Vec<Write>, extent: &mut Extent) {
        if writes.len() > MAX_SINGLE {
            return self.merge(writes, extent);
        }
        for (key, value) in writes.drain(..) {
            let found = self.find(&Probe::from(&key));
            if let Some(value) = &value {
                extent.add(&key, value);
            }
            match (found, value) {
                (Ok(at), Some(value)) => {
                    if let Some((key, old)) = self.entries.get_mut(at) {
                        extent.remove(key, old);
                        *old = value;
                    }
                }
                (Err(at), Some(value)) => {
                    if self.entries.len() == self.entries.capacity() {
                        self.entries.reserve_exact(SPARE);
                    }
                    self.entries.insert(at, (key, value));
                }
                (Ok(at), None) => {
                    let (key, old) = self.entries.remove(at);
                    extent.remove(&key, &old);
                }
                (Err(_), None) => {}
            }
        }
    }

    fn merge(&mut self, writes: &mut Vec<Write>, extent: &mut Extent) {
        let mut old = mem::take(&mut self.entries).into_iter().peekable();
        let mut merged = Vec::with_capacity(old.len() + writes.len());
        for (key, value) in writes.drain(..) {
            while let Some(entry) = old.next_if(|(other, _)| *other < key) {
                merged.push(entry);
            }
            if let Some((key, old)) = old.next_if(|(other, _)| *other == key) {
                extent.remove(&key, &old);
            }
            if let Some(value) = value {
                extent.add(&key, &value);
                merged.push((key, value));
            }
        }
        merged.extend(old);
        merged.shrink_to(merged.len() + SPARE);
        self.entries = merged;
    }

    /// Splits an overfull leaf: this one keeps the first entries. Returns the other leaves in order, each with its first key.
    pub(super) fn split(&mut self, split: Split) -> Vec<(Key, Self)> {
        let len = self.entries.len();
        let each = match split {
            Split::Full => self.max(),
            Split::Even => len.div_ceil(len.div_ceil(self.max())),
        };
        let spare = match split {
            Split::Full => 0,
            Split::Even => SPARE,
        };
        let mut leaves = Vec::with_capacity(len / each);
        while self.entries.len() > each {
            let tail = self.entries.drain((self.entries.len() - 1) / each * each..);
            let mut entries = Vec::with_capacity(tail.len() + spare);
            entries.extend(tail);
            leaves.extend(entries.first().map(|(low, _)| low.clone()).map(|low| (low, Self { entries })));
        }
        leaves.reverse();
        self.entries.shrink_to(each + SPARE);
        leaves
    }

    /// Appends the entries of the next leaf.
    pub(super) fn append(&mut self, next: Self) {
        self.entries.reserve_exact(next.entries.len());
        self.entries.extend(next.entries);
    }
}
