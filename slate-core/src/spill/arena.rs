use std::sync::Arc;

use super::row::{HEADER, Row, write_row};
use crate::Result;

/// Rows end to end in one buffer, and where each begins: no allocation per row, and none that a move of a row would
/// touch.
///
/// Payloads are copied into the buffer, or, all of them, held where they are: a row then carries the number of its own, by
/// which it is found when the rows have moved.
#[derive(Debug, Default)]
pub(super) struct Arena {
    bytes: Vec<u8>,
    places: Vec<Place>,
    /// In the order of `places`; `None` once it was let go.
    held: Vec<Option<Arc<[u8]>>>,
    held_bytes: usize,
}

/// Where a row begins, and the eight bytes of its key that decide most comparisons without a look at it.
#[derive(Clone, Copy, Debug)]
struct Place {
    prefix: u64,
    start: usize,
}

/// The number of a payload that is held.
type Number = u32;

impl Arena {
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The bytes taken, as many as if each payload had been copied: what is held is kept from being freed, and what a
    /// sort does within its memory should not depend on the store.
    pub(super) fn size(&self) -> usize {
        let numbers = self.held.len() * size_of::<Number>();
        self.bytes.len() - numbers + self.held_bytes + self.places.len() * size_of::<Place>()
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.places.clear();
        self.held.clear();
        self.held_bytes = 0;
    }

    /// Appends a row. The buffer does not grow beyond `limit` for rows to come, only for this one.
    pub(super) fn push(&mut self, sort_key: &[u8], tie_key: &[u8], payload: &[u8], limit: usize) -> Result<()> {
        if !self.held.is_empty() {
            return self.push_shared(sort_key, tie_key, payload.into(), limit);
        }
        self.write(sort_key, tie_key, payload, limit)
    }

    /// Appends a row whose payload is held.
    pub(super) fn push_shared(
        &mut self,
        sort_key: &[u8],
        tie_key: &[u8],
        payload: Arc<[u8]>,
        limit: usize,
    ) -> Result<()> {
        let number = Number::try_from(self.held.len());
        let (true, Ok(number)) = (self.held.len() == self.places.len(), number) else {
            return self.write(sort_key, tie_key, &payload, limit);
        };
        self.write(sort_key, tie_key, &number.to_le_bytes(), limit)?;
        self.held_bytes += payload.len();
        self.held.push(Some(payload));
        Ok(())
    }

    fn write(&mut self, sort_key: &[u8], tie_key: &[u8], payload: &[u8], limit: usize) -> Result<()> {
        let (start, more) = (self.bytes.len(), HEADER + sort_key.len() + tie_key.len() + payload.len());
        let needed = start + more;
        if needed > self.bytes.capacity() {
            let wanted = (self.bytes.capacity() * 2).min(limit).max(needed);
            self.bytes.reserve_exact(wanted - start);
        }
        write_row(sort_key, tie_key, payload, &mut self.bytes)?;
        self.places.push(Place { prefix: 0, start });
        Ok(())
    }

    /// The row at that place of the current order: as they were pushed, or sorted.
    #[inline]
    pub(super) fn get(&self, at: usize) -> Option<Row<'_>> {
        let row = row(&self.bytes, self.places.get(at)?)?;
        if self.held.is_empty() {
            return Some(row);
        }
        Some(Row { payload: self.held.get(at)?.as_deref()?, ..row })
    }

    /// The payload of the row at that place. A held one is found without a look at the row.
    #[inline]
    pub(super) fn payload(&self, at: usize) -> Option<&[u8]> {
        if self.held.is_empty() {
            return row(&self.bytes, self.places.get(at)?).map(|row| row.payload);
        }
        self.held.get(at)?.as_deref()
    }

    /// The rows in the current order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Row<'_>> {
        (0..self.len()).filter_map(|at| self.get(at))
    }

    /// Lets go of the payload of the row at that place, which is not asked for again. Its count lies beside it: it is
    /// best done while that is in the cache.
    pub(super) fn let_go(&mut self, at: usize) {
        if let Some(held) = self.held.get_mut(at) {
            *held = None;
        }
    }

    /// Orders the rows by their keys.
    pub(super) fn sort(&mut self) {
        if self.places.len() < 2 {
            return;
        }
        let common = self.cache_prefixes();
        let Self { bytes, places, .. } = self;
        places.sort_unstable_by(|a, b| compare(bytes, common, a, b));
        self.renumber();
    }

    /// Keeps the `most` rows with the least keys, the greatest of them last, and gives back the room of the others.
    /// Costs time in proportion to the rows that there are.
    pub(super) fn keep_least(&mut self, most: usize) {
        let Some(last) = most.checked_sub(1) else { return self.clear() };
        if self.places.len() <= most {
            return;
        }
        let common = self.cache_prefixes();
        let Self { bytes, places, .. } = self;
        places.select_nth_unstable_by(last, |a, b| compare(bytes, common, a, b));
        places.truncate(most);
        let greatest = places.last().map(|place| place.start);
        places.sort_unstable_by_key(|place| place.start);
        let mut end = 0;
        let mut moved_greatest = None;
        for (at, place) in places.iter_mut().enumerate() {
            let Some(length) = row(bytes, place).map(|row| row.written_len()) else { continue };
            bytes.copy_within(place.start..place.start + length, end);
            if greatest == Some(place.start) {
                moved_greatest = Some(at);
            }
            place.start = end;
            end += length;
        }
        bytes.truncate(end);
        if let Some(at) = moved_greatest {
            places.swap(at, last);
        }
        self.renumber();
    }

    /// Puts the held payloads in the order of their rows, and drops those of rows that are gone.
    fn renumber(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let mut held = Vec::with_capacity(self.places.len());
        for place in &self.places {
            let Some(row) = row(&self.bytes, place) else { continue };
            let (numbered, length) = (number(&row), row.written_len());
            let renumbered = Number::try_from(held.len()).unwrap_or(Number::MAX);
            held.push(numbered.and_then(|number| self.held.get_mut(number)?.take()));
            let end = place.start + length;
            if let Some(bytes) = self.bytes.get_mut(end - size_of::<Number>()..end) {
                bytes.copy_from_slice(&renumbered.to_le_bytes());
            }
        }
        self.held_bytes = held.iter().flatten().map(|payload| payload.len()).sum();
        self.held = held;
    }

    /// Notes of each key the eight bytes behind those that all keys have in common; gives back how many those are.
    fn cache_prefixes(&mut self) -> usize {
        let Self { bytes, places, .. } = self;
        let key = |place: &Place| row(bytes, place).map_or(&[][..], |row| row.key);
        let first = places.first().map_or(&[][..], key);
        let mut common = first.len();
        for place in places.iter() {
            let key = key(place);
            if key.get(..common) != first.get(..common) {
                common = first.iter().zip(key).take_while(|(a, b)| a == b).count();
            }
        }
        for place in places.iter_mut() {
            let rest = key(place).get(common..).unwrap_or_default();
            place.prefix = match rest.first_chunk() {
                Some(prefix) => u64::from_be_bytes(*prefix),
                // Filled up with zeros, a key meets those that it is a prefix of, and the bytes decide.
                None => rest.iter().rev().fold(0, |prefix, &byte| prefix >> u8::BITS | u64::from(byte) << 56),
            };
        }
        common
    }
}

/// The number that the row of a held payload carries.
#[inline]
fn number(row: &Row<'_>) -> Option<usize> {
    let number = Number::from_le_bytes(*row.payload.first_chunk()?);
    usize::try_from(number).ok()
}

#[inline]
fn row<'b>(bytes: &'b [u8], place: &Place) -> Option<Row<'b>> {
    bytes.get(place.start..).and_then(Row::parse)
}

#[inline]
fn compare(bytes: &[u8], common: usize, a: &Place, b: &Place) -> std::cmp::Ordering {
    let rest = |place| row(bytes, place).and_then(|row| row.key.get(common..)).unwrap_or_default();
    a.prefix.cmp(&b.prefix).then_with(|| rest(a).cmp(rest(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arena(keys: &[&str]) -> Arena {
        let mut arena = Arena::default();
        for key in keys {
            arena.push(key.as_bytes(), b"", key.as_bytes(), usize::MAX).unwrap();
        }
        arena
    }

    fn keys(arena: &Arena) -> Vec<&str> {
        arena.iter().map(|row| std::str::from_utf8(row.key).unwrap()).collect()
    }

    #[test]
    fn rows_are_ordered_by_all_of_their_keys() {
        let mut arena = arena(&["same.b", "same.a", "same.abcdefghz", "same.abcdefgh", "same.abcdefgha", "same."]);
        arena.sort();
        assert_eq!(keys(&arena), ["same.", "same.a", "same.abcdefgh", "same.abcdefgha", "same.abcdefghz", "same.b"]);
    }

    #[test]
    fn a_prefix_filled_up_with_zeros_is_not_taken_for_the_key() {
        let mut arena = arena(&["a\0\0", "a", "a\0", "b"]);
        arena.sort();
        assert_eq!(keys(&arena), ["a", "a\0", "a\0\0", "b"]);
    }

    #[test]
    fn payloads_that_are_held_are_lent_as_copied_ones_are_and_take_as_much_memory() {
        let keys = ["d", "a", "e", "c", "b"];
        let (mut copied, mut held) = (arena(&keys), Arena::default());
        for key in keys {
            held.push_shared(key.as_bytes(), b"", key.as_bytes().into(), usize::MAX).unwrap();
        }
        assert_eq!(held.size(), copied.size());
        let rows = |arena: &Arena| arena.iter().map(|row| (row.key.to_vec(), row.payload.to_vec())).collect::<Vec<_>>();
        for arena in [&mut copied, &mut held] {
            arena.keep_least(3);
            assert!(rows(arena).iter().all(|(key, payload)| key == payload));
            arena.push(b"a2", b"", b"a2", usize::MAX).unwrap();
            arena.sort();
        }
        assert_eq!(rows(&held), rows(&copied));
        assert_eq!(rows(&held).len(), 4);
        assert_eq!(held.size(), copied.size());
        held.let_go(1);
        assert!(held.get(1).is_none() && held.get(2).is_some());
    }

    #[test]
    fn the_least_rows_are_kept_and_the_room_of_the_others_is_given_back() {
        let mut arena = arena(&["d", "a", "e", "c", "b"]);
        arena.keep_least(3);
        assert_eq!(keys(&arena).last(), Some(&"c"), "the greatest that is kept comes last");
        assert_eq!(arena.size(), 3 * (HEADER + 2 + size_of::<Place>()));
        arena.sort();
        assert_eq!(keys(&arena), ["a", "b", "c"]);
        assert!(arena.iter().all(|row| row.payload == row.key));
    }
}
