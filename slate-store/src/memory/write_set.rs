use std::{mem, slice, sync::OnceLock};

use super::{commit_log::Access, key::Key, leaf::Write, tree::Tree, value::Value};

/// The uncommitted writes and guards of a transaction in one keyspace.
#[derive(Default)]
pub(super) struct WriteSet {
    writes: Vec<Write>,
    order: Order,
    /// The sum of the writes' [costs](cost).
    cost: usize,
    /// When the cost reaches this, all but the last write to each key are removed.
    dedup_at: usize,
    guards: Vec<(Key, Access)>,
    /// The transaction's snapshot of the keyspace with `writes` applied: built by the first read that needs it, and kept up to
    /// date from then on.
    merged: OnceLock<Tree>,
}

/// The least cost at which overwritten writes are removed before the commit.
const MIN_DEDUP: usize = 4096;

/// Returns a measure of the memory that a write holds: 1 for the write, and 1 for each 16 KiB of its value.
fn cost((_, value): &Write) -> usize {
    1 + value.as_ref().map_or(0, |value| value.len() >> 14)
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Order {
    /// Strictly ascending keys.
    #[default]
    Sorted,
    /// The order in which the writes were made.
    AsMade,
}

impl WriteSet {
    pub(super) fn write(&mut self, key: Key, value: Option<Value>) {
        if let Some(tree) = self.merged.get_mut() {
            tree.write(key.clone(), value.clone());
        }
        let write = (key, value);
        self.append(slice::from_ref(&write));
        self.writes.push(write);
    }

    /// Makes writes in strictly ascending order of keys.
    pub(super) fn write_sorted(&mut self, mut writes: Vec<Write>) {
        if let Some(tree) = self.merged.get_mut() {
            tree.write_sorted(writes.iter().cloned());
        }
        self.append(&writes);
        if self.writes.is_empty() {
            self.writes = writes;
        } else {
            self.writes.append(&mut writes);
        }
    }

    /// Prepares for appending writes in strictly ascending order of keys.
    fn append(&mut self, next: &[Write]) {
        if self.order == Order::AsMade && self.cost >= self.dedup_at.max(MIN_DEDUP) {
            self.sort();
            self.cost = self.writes.iter().map(cost).sum();
            self.dedup_at = 2 * self.cost;
        }
        self.cost += next.iter().map(cost).sum::<usize>();
        if self.writes.last().zip(next.first()).is_some_and(|((last, _), (next, _))| last >= next) {
            self.order = Order::AsMade;
        }
    }

    /// Sorts the writes by key and keeps the last one to each key.
    pub(super) fn sort(&mut self) {
        if mem::take(&mut self.order) == Order::AsMade {
            sort(&mut self.writes);
        }
    }

    pub(super) fn guard(&mut self, key: Key, access: Access) {
        self.guards.push((key, access));
    }

    /// Returns whether a commit with these accesses can make others conflict.
    pub(super) fn leaves_trace(&self) -> bool {
        !self.writes.is_empty() || self.guards.iter().any(|(_, access)| *access == Access::Exclusive)
    }

    /// Returns the number of writes.
    pub(super) fn len(&self) -> usize {
        self.writes.len()
    }

    /// Returns the keyspace as the transaction sees it. `base` is the keyspace in the transaction's snapshot.
    pub(super) fn merged<'t>(&'t self, base: Option<&'t Tree>) -> Option<&'t Tree> {
        if self.writes.is_empty() {
            return base;
        }
        Some(self.merged.get_or_init(|| {
            let mut tree = base.cloned().unwrap_or_default();
            match self.order {
                Order::Sorted => tree.write_sorted(self.writes.iter().cloned()),
                Order::AsMade => {
                    let mut writes = self.writes.clone();
                    sort(&mut writes);
                    tree.write_sorted(writes);
                }
            }
            tree
        }))
    }

    /// Returns a tree and sorted writes that take precedence over it. Builds the merged tree only if the writes are not
    /// sorted.
    pub(super) fn overlay<'t>(&'t self, base: Option<&'t Tree>) -> (Option<&'t Tree>, &'t [Write]) {
        match (self.order, self.merged.get()) {
            (Order::Sorted, None) => (base, &self.writes),
            _ => (self.merged(base), &[]),
        }
    }

    /// Returns the keys that were written or guarded.
    pub(super) fn accesses(&self) -> impl Iterator<Item = (&Key, Access)> {
        let writes = self.writes.iter().map(|(key, _)| (key, Access::Write));
        writes.chain(self.guards.iter().map(|(key, access)| (key, *access)))
    }

    /// Applies the [sorted](Self::sort) writes to `latest`. Takes over the merged tree, if there is one, when no commit
    /// changed the keyspace since `base`.
    pub(super) fn apply(mut self, base: Option<&Tree>, latest: &mut Tree) {
        match self.merged.take() {
            Some(tree) if base.is_some_and(|base| base.is_same_version(latest)) => *latest = tree,
            _ => latest.write_sorted(self.writes),
        }
    }
}

/// Finds the write to a key in sorted writes; `None` where the key was not written.
pub(super) fn find<'w>(writes: &'w [Write], key: &[u8]) -> Option<Option<&'w Value>> {
    // Reads and writes are often both ascending, so most keys are above all written ones.
    writes.last().filter(|(last, _)| last.as_slice() >= key)?;
    let at = writes.binary_search_by(|(other, _)| other.as_slice().cmp(key)).ok()?;
    writes.get(at).map(|(_, value)| value.as_ref())
}

fn sort(writes: &mut Vec<Write>) {
    // The sort is stable: writes to the same key stay in the order in which they were made.
    writes.sort_by(|(a, _), (b, _)| a.cmp(b));
    writes.dedup_by(|next, kept| {
        let is_same = next.0 == kept.0;
        if is_same {
            mem::swap(next, kept);
        }
        is_same
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(key: u8, value: &[u8]) -> Write {
        (Key::new(&[key]), Some(Value::new(value)))
    }

    #[test]
    fn the_last_write_to_a_key_counts_whether_or_not_it_was_merged() {
        for is_merged in [false, true] {
            let mut set = WriteSet::default();
            set.write_sorted(vec![write(1, b"a"), write(3, b"a"), write(5, b"a")]);
            if is_merged {
                assert!(set.merged(None).is_some());
            }
            set.write(Key::new(&[3]), Some(Value::new(b"b")));
            set.write(Key::new(&[5]), None);
            set.write_sorted(vec![write(1, b"b")]);
            set.write_sorted(vec![write(3, b"c"), write(4, b"c"), write(6, b"c"), write(7, b"c")]);
            set.sort();
            assert_eq!(find(&set.writes, &[3]).flatten().map(|value| &**value), Some(&b"c"[..]));
            assert!(matches!(find(&set.writes, &[5]), Some(None)) && find(&set.writes, &[2]).is_none());
            assert_eq!(set.overlay(None).1.is_empty(), is_merged);
            let keys = |tree: &Tree| tree.entries().map(|(key, _)| key.as_slice()[0]).collect::<Vec<_>>();
            assert_eq!(keys(set.merged(None).unwrap()), [1, 3, 4, 6, 7]);
            let mut latest = Tree::default();
            set.apply(Some(&Tree::default()), &mut latest);
            assert_eq!(keys(&latest), [1, 3, 4, 6, 7]);
        }
    }

    #[test]
    fn overwritten_values_are_not_kept() {
        let mut set = WriteSet::default();
        (0..10 * MIN_DEDUP).for_each(|number| set.write(Key::new(&(number % 7).to_be_bytes()), None));
        assert!(set.len() <= MIN_DEDUP && set.writes.capacity() <= 2 * MIN_DEDUP);
        let large = Value::new(&vec![0; 16 << 20]);
        (0..20).for_each(|_| set.write(Key::new(b"large"), Some(large.clone())));
        assert!(set.len() < 20);
    }
}
