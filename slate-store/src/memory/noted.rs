use std::mem;

use super::{key::Key, leaf::Write, value::Value};

/// The most writes to a keyspace that are noted, to be applied by the commit: in place where nobody reads. A reader that
/// comes meanwhile waits, for scattered keys about 400 ns a write.
pub(super) const MOST: usize = 4096;

/// The most bytes of values that are noted: of those that are overwritten again, all are held until they are put in order.
const MOST_BYTES: usize = 64 << 20;

/// Writes to a keyspace that are not applied yet.
#[derive(Clone, Default)]
pub(super) struct Noted {
    writes: Vec<Write>,
    order: Order,
    /// Those of the values.
    bytes: usize,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Order {
    /// That of the keys, each of which stands there once.
    #[default]
    Keys,
    /// The one in which they were made.
    Made,
}

impl Noted {
    pub(super) fn len(&self) -> usize {
        self.writes.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Write> {
        self.writes.iter()
    }

    /// Whether so many may come beside them.
    pub(super) fn has_room(&self, writes: &[Write]) -> bool {
        self.writes.len() + writes.len() <= MOST && self.bytes.saturating_add(bytes(writes)) <= MOST_BYTES
    }

    /// Whether none may come any more.
    pub(super) fn is_full(&self) -> bool {
        self.writes.len() >= MOST || self.bytes >= MOST_BYTES
    }

    pub(super) fn push(&mut self, write: Write) {
        self.note_order(&write.0);
        self.bytes = self.bytes.saturating_add(length(&write));
        self.writes.push(write);
    }

    /// Adds writes, each to a key above the one before.
    pub(super) fn extend(&mut self, writes: Vec<Write>) {
        let Some((first, _)) = writes.first() else { return };
        debug_assert!(writes.is_sorted_by(|(a, _), (b, _)| a < b), "each key is above the one before");
        self.note_order(first);
        self.bytes = self.bytes.saturating_add(bytes(&writes));
        if self.writes.is_empty() {
            self.writes = writes;
            return;
        }
        let are_many = writes.len() >= self.writes.len() / 8;
        self.writes.extend(writes);
        // Each time it is done they have grown by a part of themselves: in all it costs little.
        if are_many {
            self.put_in_order();
        }
    }

    fn note_order(&mut self, next: &Key) {
        if self.writes.last().is_some_and(|(last, _)| last >= next) {
            self.order = Order::Made;
        }
    }

    /// Brings them into the order of their keys, the last write to each.
    pub(super) fn put_in_order(&mut self) {
        if mem::take(&mut self.order) == Order::Keys {
            return;
        }
        // Stable: runs that are sorted already are merged, and writes to one key stay in their order.
        self.writes.sort_by(|(a, _), (b, _)| a.cmp(b));
        self.writes.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            if is_same {
                mem::swap(next, kept);
            }
            is_same
        });
        self.bytes = bytes(&self.writes);
    }

    /// The writes, where they are in the order of their keys.
    pub(super) fn in_order(&self) -> Option<&[Write]> {
        (self.order == Order::Keys).then_some(&self.writes)
    }

    /// Takes them away, in the order of their keys.
    pub(super) fn take(&mut self) -> Vec<Write> {
        let mut all = mem::take(self);
        all.put_in_order();
        all.writes
    }
}

/// What was written to a key, of writes in the order of their keys; `None` where nothing was.
pub(super) fn find<'w>(writes: &'w [Write], key: &[u8]) -> Option<Option<&'w Value>> {
    // Writes and reads often both ascend.
    writes.last().filter(|(last, _)| last.as_slice() >= key)?;
    let at = writes.binary_search_by(|(written, _)| written.as_slice().cmp(key)).ok()?;
    writes.get(at).map(|(_, value)| value.as_ref())
}

fn length((_, value): &Write) -> usize {
    value.as_deref().map_or(0, <[u8]>::len)
}

fn bytes(writes: &[Write]) -> usize {
    writes.iter().map(length).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(key: u8, value: &[u8]) -> Write {
        (Key::new(&[key]), Some(Value::new(value, 1)))
    }

    #[test]
    fn the_last_write_to_a_key_is_kept_whatever_came_between() {
        let mut noted = Noted::default();
        noted.extend(vec![write(1, b"a"), write(3, b"a"), write(5, b"a")]);
        assert!(noted.in_order().is_some());
        noted.push(write(3, b"b"));
        noted.push((Key::new(&[5]), None));
        noted.push(write(3, b"c"));
        assert!(noted.in_order().is_none());
        noted.put_in_order();
        let writes = noted.in_order().unwrap();
        assert_eq!(find(writes, &[3]).flatten().map(|value| &**value), Some(&b"c"[..]));
        assert!(matches!(find(writes, &[5]), Some(None)));
        assert!(find(writes, &[2]).is_none() && find(writes, &[6]).is_none());
        assert_eq!(noted.take().len(), 3);
        assert_eq!(noted.len(), 0);
    }

    #[test]
    fn they_are_full_by_number_or_by_bytes() {
        let mut noted = Noted::default();
        (0..MOST).for_each(|_| noted.push(write(1, b"")));
        assert!(noted.is_full() && !noted.has_room(&[write(1, b"")]));
        noted.put_in_order();
        assert!(!noted.is_full(), "what was overwritten takes no room");
        let large = vec![0; MOST_BYTES / 2];
        noted.push(write(2, &large));
        assert!(noted.has_room(&[write(3, &large)]) && !noted.has_room(&[write(3, &large), write(4, b"long")]));
        noted.push(write(2, &large));
        assert!(noted.is_full());
    }
}
