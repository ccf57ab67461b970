use std::sync::Arc;

use slate_query::raw::leading;
use slate_store::prefetch;

use super::row::{HEADER, Row, write_row};
use crate::Result;

/// Rows end to end in one buffer, where each begins, and their order: no allocation per row, and none that a move of a
/// row would touch.
///
/// Payloads are copied into the buffer, or, all of them, held where they are.
#[derive(Debug, Default)]
pub(super) struct Arena {
    bytes: Vec<u8>,
    /// By the rows' numbers: in the order in which they were pushed, or, once sorted, in that.
    starts: Vec<usize>,
    /// The same; `None` once it was let go.
    held: Vec<Option<Payload>>,
    /// In the order in which rows are lent.
    order: Vec<Place>,
    held_bytes: usize,
    /// Where starts and payloads are put in order.
    ordered: (Vec<usize>, Vec<Option<Payload>>),
    /// Where rows are shared out by a byte of their keys.
    shared_out: Vec<Place>,
}

/// A payload that is held where it is.
type Payload = Arc<[u8]>;

/// A row's number, and the eight bytes of its key that decide most comparisons without a look at it.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    prefix: u64,
    row: usize,
}

/// What a row takes beside its bytes, and once more where rows are put in order.
const OVERHEAD: usize = 2 * (size_of::<Place>() + size_of::<usize>());

impl Arena {
    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// The bytes taken, as many as if each payload had been copied: what is held is kept from being freed, and what a
    /// sort does within its memory should not depend on the store.
    pub(super) fn size(&self) -> usize {
        self.bytes.len() + self.held_bytes + self.starts.len() * OVERHEAD
    }

    /// The bytes that it has room for.
    pub(super) fn capacity(&self) -> usize {
        let starts = self.starts.capacity() + self.ordered.0.capacity();
        let held = self.held.capacity() + self.ordered.1.capacity();
        self.bytes.capacity()
            + starts * size_of::<usize>()
            + held * size_of::<Payload>()
            + (self.order.capacity() + self.shared_out.capacity()) * size_of::<Place>()
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.starts.clear();
        self.order.clear();
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
        payload: Payload,
        limit: usize,
    ) -> Result<()> {
        if self.held.len() < self.starts.len() {
            return self.write(sort_key, tie_key, &payload, limit);
        }
        self.write(sort_key, tie_key, &[], limit)?;
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
        self.order.push(Place { prefix: 0, row: self.starts.len() });
        self.starts.push(start);
        Ok(())
    }

    /// The row of that number.
    #[inline]
    pub(super) fn numbered(&self, number: usize) -> Option<Row<'_>> {
        let row = row(&self.bytes, *self.starts.get(number)?)?;
        if self.held.is_empty() {
            return Some(row);
        }
        Some(Row { payload: self.held.get(number)?.as_deref()?, ..row })
    }

    /// The row at that place of the current order.
    #[inline]
    pub(super) fn get(&self, at: usize) -> Option<Row<'_>> {
        self.numbered(self.order.get(at)?.row)
    }

    /// The payload of the row at that place. A held one is found without a look at the row.
    #[inline]
    pub(super) fn payload(&self, at: usize) -> Option<&[u8]> {
        let number = self.order.get(at)?.row;
        if self.held.is_empty() {
            return self.numbered(number).map(|row| row.payload);
        }
        self.held.get(number)?.as_deref()
    }

    /// Asks for the row at that place, as far as reading its payload needs it.
    #[inline]
    pub(super) fn prefetch(&self, at: usize) {
        let Some(number) = self.order.get(at).map(|place| place.row) else { return };
        if let Some(payload) = self.held.get(number) {
            prefetch(payload.as_deref().unwrap_or_default());
        } else if let Some(&start) = self.starts.get(number) {
            // How long it is stands in the row itself, for which one would have to wait.
            let beginning = self.bytes.get(start..).unwrap_or_default();
            prefetch(beginning.get(..64).unwrap_or(beginning));
        }
    }

    /// The rows in the current order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Row<'_>> {
        (0..self.len()).filter_map(|at| self.get(at))
    }

    /// Lets go of the payload of the row at that place, which is not asked for again. Its count lies beside it: it is
    /// best done while that is in the cache.
    pub(super) fn let_go(&mut self, at: usize) {
        if self.held.is_empty() {
            return;
        }
        if let Some(held) = self.order.get(at).and_then(|place| self.held.get_mut(place.row)) {
            *held = None;
        }
    }

    /// Orders the rows by their keys.
    pub(super) fn sort(&mut self) {
        if self.order.len() < 2 {
            return;
        }
        let keys = self.look_at_keys();
        let Self { bytes, starts, order, shared_out, .. } = self;
        match keys.told_by {
            // Nothing is looked up, and no branch is guessed.
            Some(mask) => sort_by_prefix(order, mask, shared_out),
            None => order.sort_unstable_by(|a, b| compare(bytes, starts, keys.common, a, b)),
        }
        self.renumber();
    }

    /// Numbers the rows in their order: who reads them goes along starts and payloads then.
    fn renumber(&mut self) {
        let Self { starts, held, order, ordered: (ordered_starts, ordered_held), .. } = self;
        ordered_starts.clear();
        ordered_starts.extend(order.iter().filter_map(|place| starts.get(place.row)));
        std::mem::swap(starts, ordered_starts);
        if !held.is_empty() {
            ordered_held.clear();
            ordered_held.extend(order.iter().map(|place| held.get_mut(place.row).and_then(Option::take)));
            std::mem::swap(held, ordered_held);
        }
        order.iter_mut().enumerate().for_each(|(at, place)| place.row = at);
    }

    /// Keeps the `most` rows with the least keys, the greatest of them last, and gives back the room of the others.
    /// Costs time in proportion to the rows that there are.
    pub(super) fn keep_least(&mut self, most: usize) {
        let Some(last) = most.checked_sub(1) else { return self.clear() };
        if self.order.len() <= most {
            return;
        }
        let keys = self.look_at_keys();
        let Self { bytes, starts, order, held, held_bytes, .. } = self;
        order.select_nth_unstable_by(last, |a, b| compare(bytes, starts, keys.common, a, b));
        order.truncate(most);
        let greatest = order.last().map(|place| place.row);
        order.sort_unstable_by_key(|place| place.row);
        let mut end = 0;
        let mut moved_greatest = None;
        for (at, place) in order.iter_mut().enumerate() {
            let Some(&start) = starts.get(place.row) else { continue };
            let Some(length) = row(bytes, start).map(|row| row.written_len()) else { continue };
            bytes.copy_within(start..start + length, end);
            if greatest == Some(place.row) {
                moved_greatest = Some(at);
            }
            // Never beyond the row itself: those before it are kept or gone.
            if !held.is_empty() {
                held.swap(at, place.row);
            }
            if let Some(start) = starts.get_mut(at) {
                *start = end;
            }
            place.row = at;
            end += length;
        }
        bytes.truncate(end);
        starts.truncate(most);
        held.truncate(most);
        *held_bytes = held.iter().flatten().map(|payload| payload.len()).sum();
        if let Some(at) = moved_greatest {
            order.swap(at, last);
        }
    }

    /// Notes of each key the eight bytes behind those that all keys have in common.
    fn look_at_keys(&mut self) -> Keys {
        let Self { bytes, starts, order, .. } = self;
        let row = |place: &Place| starts.get(place.row).and_then(|&start| row(bytes, start));
        let key = |place: &Place| row(place).map_or(&[][..], |row| row.key);
        let first = order.first().map_or(&[][..], key);
        let mut common = first.len();
        let (mut longest, mut ties_ascend, mut last) = (0, true, None);
        for place in order.iter() {
            let Some(row) = row(place) else { continue };
            if !begin_alike(row.key, first, common) {
                common = first.iter().zip(row.key).take_while(|(a, b)| a == b).count();
            }
            longest = longest.max(row.split);
            let tie = (leading(row.tie_key()), row.tie_key());
            ties_ascend = ties_ascend && last.is_none_or(|(last, before)| last < place.row && before <= tie);
            last = Some((place.row, tie));
        }
        // The bytes that a prefix has beyond a shorter sort key are of the tie key, which would be decided by them, too.
        // Filled up with zeros, a key meets those that it is a prefix of, and the bytes decide.
        order.iter_mut().for_each(|place| place.prefix = leading(key(place).get(common..).unwrap_or_default()));
        let told = longest.saturating_sub(common);
        Keys { common, told_by: (ties_ascend && told <= size_of::<u64>()).then(|| highest(told)) }
    }
}

/// Whether two keys have so many bytes in common, in front. Most have few, and a call to compare them takes longer than
/// the look.
#[inline]
fn begin_alike(a: &[u8], b: &[u8], bytes: usize) -> bool {
    a.len() >= bytes
        && (leading(a) ^ leading(b)) & highest(bytes) == 0
        && (bytes <= size_of::<u64>() || a.get(..bytes) == b.get(..bytes))
}

/// A word of whose bytes the highest, so many, are all ones.
#[inline]
fn highest(bytes: usize) -> u64 {
    if bytes < size_of::<u64>() { !(u64::MAX >> (u8::BITS as usize * bytes)) } else { u64::MAX }
}

/// Puts places, which stand in the order of their rows, in that of their prefixes under the mask; of equal ones the rows
/// stay in theirs.
fn sort_by_prefix(order: &mut Vec<Place>, mask: u64, shared_out: &mut Vec<Place>) {
    /// With so many bytes to be shared out by, comparing takes less.
    const MANY: usize = 4;
    /// And where there are so few rows.
    const FEW: usize = 256;
    let first = order.first().map_or(0, |place| place.prefix);
    let differing = order.iter().fold(0, |differing, place| differing | (place.prefix ^ first)) & mask;
    let bytes = || (0..u64::BITS).step_by(8).filter(|shift| differing >> shift & 0xff != 0);
    if order.len() <= FEW || bytes().count() >= MANY {
        return order.sort_unstable_by_key(|place| (place.prefix & mask, place.row));
    }
    // From the last byte to the first, each time in as many parts as there are bytes (Knuth, 5.2.5).
    for shift in bytes() {
        let byte = |place: &Place| usize::from((place.prefix >> shift).to_le_bytes()[0]);
        let mut next = [0_usize; 256];
        for place in order.iter() {
            if let Some(count) = next.get_mut(byte(place)) {
                *count += 1;
            }
        }
        let mut start = 0;
        for count in &mut next {
            start += std::mem::replace(count, start);
        }
        shared_out.resize(order.len(), Place::default());
        for place in order.iter() {
            let to = next.get_mut(byte(place)).map(|next| std::mem::replace(next, *next + 1));
            if let Some(to) = to.and_then(|to| shared_out.get_mut(to)) {
                *to = *place;
            }
        }
        std::mem::swap(order, shared_out);
    }
}

/// What all keys of an arena have in common.
struct Keys {
    /// So many bytes in front.
    common: usize,
    /// Where their order is that of these bits of their prefixes, and of equal ones that in which they came.
    told_by: Option<u64>,
}

#[inline]
fn row(bytes: &[u8], start: usize) -> Option<Row<'_>> {
    bytes.get(start..).and_then(Row::parse)
}

#[inline]
fn compare(bytes: &[u8], starts: &[usize], common: usize, a: &Place, b: &Place) -> std::cmp::Ordering {
    let start = |place: &Place| starts.get(place.row).copied();
    let rest = |place| start(place).and_then(|start| row(bytes, start)?.key.get(common..)).unwrap_or_default();
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

    /// Rows of one sort key.
    fn tied(keys: &[&str]) -> Arena {
        let mut arena = Arena::default();
        for key in keys {
            arena.push(b"", key.as_bytes(), b"", usize::MAX).unwrap();
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
    fn rows_told_apart_by_their_prefixes_come_tied_in_the_order_of_their_pushes() {
        let mut arena = Arena::default();
        for (sort_key, tie_key) in [("same.2", "a"), ("same.1", "b"), ("same.0123", "b0"), ("same.1", "c")] {
            arena.push(sort_key.as_bytes(), tie_key.as_bytes(), b"", usize::MAX).unwrap();
        }
        arena.sort();
        assert_eq!(keys(&arena), ["same.0123b0", "same.1b", "same.1c", "same.2a"]);
        // One that comes out of order has them all compared.
        let mut arena = Arena::default();
        for (sort_key, tie_key) in [("2", "a"), ("1", "c"), ("1", "b")] {
            arena.push(sort_key.as_bytes(), tie_key.as_bytes(), b"", usize::MAX).unwrap();
        }
        arena.sort();
        assert_eq!(keys(&arena), ["1b", "1c", "2a"]);
    }

    #[test]
    fn many_rows_told_by_few_bytes_are_ordered_as_comparing_orders_them() {
        let scattered = |n: u32| n.wrapping_mul(0x9e37_79b9);
        // By one byte, by several that do not lie beside each other, by so many that they are compared.
        for mask in [0x0000_ff00, 0x00ff_00ff, 0x0f00_030f, 0xffff_ffff, 0] {
            let rows: Vec<([u8; 4], [u8; 4])> =
                (0..3_000).map(|n| ((scattered(n) & mask).to_be_bytes(), n.to_be_bytes())).collect();
            let mut arena = Arena::default();
            // Once more with the same buffers.
            for _ in 0..2 {
                arena.clear();
                for (sort_key, tie_key) in &rows {
                    arena.push(sort_key, tie_key, b"", usize::MAX).unwrap();
                }
                arena.sort();
                let mut sorted: Vec<Vec<u8>> =
                    rows.iter().map(|(sort_key, tie_key)| [*sort_key, *tie_key].concat()).collect();
                sorted.sort();
                assert!(arena.iter().map(|row| row.key).eq(sorted.iter().map(Vec::as_slice)), "{mask:x}");
            }
        }
    }

    #[test]
    fn a_prefix_filled_up_with_zeros_is_not_taken_for_the_key() {
        for keys_pushed in [["a\0\0", "a", "a\0", "b"], ["a", "a\0", "a\0\0", "b"]] {
            let mut arena = tied(&keys_pushed);
            arena.sort();
            assert_eq!(keys(&arena), ["a", "a\0", "a\0\0", "b"]);
        }
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
        assert_eq!(arena.size(), 3 * (HEADER + 2 + OVERHEAD));
        arena.sort();
        assert_eq!(keys(&arena), ["a", "b", "c"]);
        assert!(arena.iter().all(|row| row.payload == row.key));
    }
}
