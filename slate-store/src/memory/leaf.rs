use std::{iter, mem, ops::Bound};

use super::{
    block::{self, Fill, SPARE},
    key::{Key, Sought},
    value::Value,
};

/// The most entries of a leaf whose values lie in place, as those of an index.
pub(super) const MOST: usize = if cfg!(test) { 8 } else { 64 };

/// The most entries of a leaf of values that lie elsewhere. To copy it counts each of them as shared once more, and the
/// counts lie all over memory.
const MOST_VALUES: usize = MOST / 2;

/// The longest run of writes that are made one by one. Longer ones are merged with the entries in one pass.
const SINGLE: usize = 4;

/// A key and its value.
pub(super) type Entry = (Key, Value);

/// What is put under a key; `None` deletes it.
pub(super) type Write = (Key, Option<Value>);

/// Entries that lie beside each other, in the order of their keys.
#[derive(Default)]
pub(super) struct Leaf {
    entries: Vec<Entry>,
}

/// How many entries there are, and the bytes of their keys and values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) entries: u64,
    pub(super) bytes: u64,
}

impl Extent {
    fn add(&mut self, key: &Key, value: &Value) {
        self.entries += 1;
        self.bytes = self.bytes.saturating_add(size(key.as_slice().len())).saturating_add(size(value.len()));
    }

    fn take(&mut self, key: &Key, value: &Value) {
        self.entries = self.entries.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(size(key.as_slice().len())).saturating_sub(size(value.len()));
    }
}

/// A length in memory always fits.
pub(super) fn size(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// A copy is about to be written to: it has room for that.
impl Clone for Leaf {
    fn clone(&self) -> Self {
        self.entries.iter().for_each(|(_, value)| value.prefetch_count());
        let mut entries = Vec::with_capacity(self.entries.len() + SPARE);
        entries.extend_from_slice(&self.entries);
        Self { entries }
    }
}

impl Leaf {
    #[inline]
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The most entries it may have.
    pub(super) fn most(&self) -> usize {
        match self.entries.last() {
            Some((_, value)) if value.is_shared() => MOST_VALUES,
            _ => MOST,
        }
    }

    /// Whether it is to be joined with one beside it, if the two of them have no more than [`joined`](Self::joined).
    pub(super) fn is_small(&self) -> bool {
        self.entries.len() <= self.most() / 4
    }

    /// The most entries that two leaves are joined to: not so many that the next puts part them again.
    pub(super) fn joined(&self) -> usize {
        self.most() / 4 * 3
    }

    /// Where the key stands, or would.
    #[inline]
    pub(super) fn find(&self, key: &Sought<'_>) -> Result<usize, usize> {
        block::find(&self.entries, key)
    }

    #[inline]
    pub(super) fn get(&self, key: &Sought<'_>) -> Option<&Value> {
        self.find(key).ok().and_then(|at| self.entries.get(at)).map(|(_, value)| value)
    }

    /// The entries above the bound.
    pub(super) fn above(&self, bound: Bound<&[u8]>) -> &[Entry] {
        let start = match bound {
            Bound::Included(key) => self.find(&Sought::new(key)).unwrap_or_else(|at| at),
            Bound::Excluded(key) => self.find(&Sought::new(key)).map_or_else(|at| at, |at| at + 1),
            Bound::Unbounded => 0,
        };
        self.entries.get(start..).unwrap_or_default()
    }

    /// The entries below the bound.
    pub(super) fn below(&self, bound: Bound<&[u8]>) -> &[Entry] {
        let end = match bound {
            Bound::Included(key) => self.find(&Sought::new(key)).map_or_else(|at| at, |at| at + 1),
            Bound::Excluded(key) => self.find(&Sought::new(key)).unwrap_or_else(|at| at),
            Bound::Unbounded => self.entries.len(),
        };
        self.entries.get(..end).unwrap_or_default()
    }

    /// Asks for the leaf itself: it will be read soon.
    #[inline]
    pub(super) fn prefetch(&self) {
        branches::prefetch_read_data::<Self, 0>(self);
    }

    /// Makes a write and more, each to a key above the one before. It may have more entries then than it may have.
    pub(super) fn write(&mut self, first: Write, more: impl ExactSizeIterator<Item = Write>, extent: &mut Extent) {
        let count = 1 + more.len();
        let writes = iter::once(first).chain(more);
        if count <= SINGLE {
            for (key, value) in writes {
                self.write_at(self.find(&Sought::from(&key)), key, value, extent);
            }
        } else {
            self.merge(writes, count, extent);
        }
    }

    /// Makes a write to a key which was [found](Self::find) at that place.
    pub(super) fn write_at(&mut self, at: Result<usize, usize>, key: Key, value: Option<Value>, extent: &mut Extent) {
        match (at, value) {
            (Ok(at), Some(value)) => {
                if let Some((key, old)) = self.entries.get_mut(at) {
                    extent.take(key, old);
                    extent.add(key, &value);
                    *old = value;
                }
            }
            (Err(at), Some(value)) => {
                extent.add(&key, &value);
                block::insert(&mut self.entries, at, (key, value));
            }
            (Ok(at), None) => {
                let (key, old) = self.entries.remove(at);
                extent.take(&key, &old);
            }
            (Err(_), None) => {}
        }
    }

    fn merge(&mut self, writes: impl Iterator<Item = Write>, count: usize, extent: &mut Extent) {
        let mut old = mem::take(&mut self.entries).into_iter().peekable();
        let mut merged = Vec::with_capacity(old.len() + count);
        for (key, value) in writes {
            while let Some(entry) = old.next_if(|(stands, _)| *stands < key) {
                merged.push(entry);
            }
            if let Some((key, old)) = old.next_if(|(stands, _)| *stands == key) {
                extent.take(&key, &old);
            }
            if let Some(value) = value {
                extent.add(&key, &value);
                merged.push((key, value));
            }
        }
        merged.extend(old);
        // Where much was overwritten, or deleted, there is far too much room.
        merged.shrink_to(merged.len() + SPARE);
        self.entries = merged;
    }

    /// Gives up what is more than a leaf may have: leaves to come after this one, each with its first key.
    pub(super) fn share_out(&mut self, fill: Fill) -> impl Iterator<Item = (Key, Self)> + use<> {
        let most = self.most();
        block::share_out(&mut self.entries, most, fill).into_iter().map(|(first, entries)| (first, Self { entries }))
    }

    /// Takes over the entries of the leaf that comes next.
    pub(super) fn join(&mut self, next: Self) {
        self.entries.reserve_exact(next.entries.len());
        self.entries.extend(next.entries);
    }
}
