use std::{cmp::Ordering, sync::Arc};

use branches::prefetch_read_data;
use slate_query::{raw::leading, work};

use super::{
    counted_sort::{SORTED_AT_ONCE, count_row, sort_counted},
    prefix_sort::{SortEntry, leading_bytes_mask, sort_by_key, sort_by_prefix},
    row::{HEADER, Row, write_row},
};
use crate::Result;

/// Rows stored end to end in one buffer, with the offset of each row and the current order. Adding or sorting a row
/// allocates nothing.
///
/// Payloads are either all copied into the buffer, or all shared as reference-counted slices.
#[derive(Debug, Default)]
pub(super) struct Arena {
    bytes: Vec<u8>,
    /// Offset of each row, by row number. Row numbers follow insertion order until [`sort`](Self::sort) renumbers them.
    starts: Vec<usize>,
    /// Shared payloads, by row number. `None` once released.
    shared: Vec<Option<Payload>>,
    shared_bytes: usize,
    /// The rows in the order in which they are lent.
    order: Vec<SortEntry>,
    /// Scratch space for renumbering `starts` and `shared`.
    renumbered: (Vec<usize>, Vec<Option<Payload>>),
    /// Scratch space for the radix sort.
    radix_buffer: Vec<SortEntry>,
}

/// A payload that is shared with the store.
type Payload = Arc<[u8]>;

/// Bytes that a row takes in addition to its encoding: its offset and sort entry, doubled for the scratch space.
const OVERHEAD: usize = 2 * (size_of::<SortEntry>() + size_of::<usize>());

/// Maximum number of rows from which the least are selected without checking whether the call has ended: a few tens
/// of milliseconds.
const SELECTED_AT_ONCE: usize = 1 << 19;

/// Number of rows that are renumbered between two checks whether the call has ended.
const RENUMBERED_AT_ONCE: usize = 1 << 14;

impl Arena {
    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Bytes in use. A shared payload counts as if it were copied, so that spilling does not depend on the store.
    pub(super) fn size(&self) -> usize {
        self.bytes.len() + self.shared_bytes + self.starts.len() * OVERHEAD
    }

    /// Bytes allocated.
    pub(super) fn capacity(&self) -> usize {
        let starts = self.starts.capacity() + self.renumbered.0.capacity();
        let shared = self.shared.capacity() + self.renumbered.1.capacity();
        self.bytes.capacity()
            + starts * size_of::<usize>()
            + shared * size_of::<Payload>()
            + (self.order.capacity() + self.radix_buffer.capacity()) * size_of::<SortEntry>()
    }

    /// Returns the bytes that the rows and the buffers hold, shared payloads included.
    pub(super) fn held(&self) -> usize {
        self.size().max(self.capacity())
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.starts.clear();
        self.order.clear();
        self.shared.clear();
        self.shared_bytes = 0;
    }

    /// Appends a row with a copy of its payload. The buffer grows beyond `limit` only as far as this row needs.
    pub(super) fn push(&mut self, sort_key: &[u8], tie_key: &[u8], payload: &[u8], limit: usize) -> Result<()> {
        if !self.shared.is_empty() {
            return self.push_shared(sort_key, tie_key, payload.into(), limit);
        }
        self.write(sort_key, tie_key, payload, limit)
    }

    /// Appends a row with a shared payload, which is copied if those of earlier rows were.
    pub(super) fn push_shared(
        &mut self,
        sort_key: &[u8],
        tie_key: &[u8],
        payload: Payload,
        limit: usize,
    ) -> Result<()> {
        if self.shared.len() < self.starts.len() {
            return self.write(sort_key, tie_key, &payload, limit);
        }
        self.write(sort_key, tie_key, &[], limit)?;
        self.shared_bytes += payload.len();
        self.shared.push(Some(payload));
        Ok(())
    }

    fn write(&mut self, sort_key: &[u8], tie_key: &[u8], payload: &[u8], limit: usize) -> Result<()> {
        work::take_copied(payload.len())?;
        let start = self.bytes.len();
        let needed = start + HEADER + sort_key.len() + tie_key.len() + payload.len();
        if needed > self.bytes.capacity() {
            let capacity = (self.bytes.capacity() * 2).min(limit).max(needed);
            self.bytes.reserve_exact(capacity - start);
        }
        write_row(sort_key, tie_key, payload, &mut self.bytes)?;
        self.order.push(SortEntry { prefix: 0, row: self.starts.len() });
        self.starts.push(start);
        Ok(())
    }

    /// Returns the row with this number.
    #[inline]
    pub(super) fn row(&self, number: usize) -> Option<Row<'_>> {
        let row = row_at(&self.bytes, *self.starts.get(number)?)?;
        if self.shared.is_empty() {
            return Some(row);
        }
        Some(Row { payload: self.shared.get(number)?.as_deref()?, ..row })
    }

    /// Returns the row at this position of the current order.
    #[inline]
    pub(super) fn get(&self, at: usize) -> Option<Row<'_>> {
        self.row(self.order.get(at)?.row)
    }

    /// Returns the payload of the row at this position, without reading the row if the payload is shared.
    #[inline]
    pub(super) fn payload(&self, at: usize) -> Option<&[u8]> {
        let number = self.order.get(at)?.row;
        if self.shared.is_empty() {
            return self.row(number).map(|row| row.payload);
        }
        self.shared.get(number)?.as_deref()
    }

    /// Prefetches the payload of the row at this position: its first cache lines, and the last, which readers of BSON check.
    #[inline]
    pub(super) fn prefetch(&self, at: usize) {
        const LINE: usize = 64;
        let Some(number) = self.order.get(at).map(|entry| entry.row) else { return };
        let lines = match self.shared.get(number) {
            Some(payload) => {
                let payload = payload.as_deref().unwrap_or_default();
                [payload.first(), payload.get(LINE), payload.get(2 * LINE), payload.last()]
            }
            None => [self.starts.get(number).and_then(|&start| self.bytes.get(start)), None, None, None],
        };
        lines.into_iter().flatten().for_each(|line| prefetch_read_data::<u8, 0>(line));
    }

    /// Returns the rows in the current order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Row<'_>> {
        self.iter_from(0)
    }

    /// Returns the rows in the current order from a position on. Those before may have been released.
    pub(super) fn iter_from(&self, at: usize) -> impl Iterator<Item = Row<'_>> {
        (at..self.len()).filter_map(|at| self.get(at))
    }

    /// Releases the shared payload of the row at this position, which must not be read again. Its reference count is next
    /// to the payload, so the cheapest time is right after reading it.
    pub(super) fn release(&mut self, at: usize) {
        if self.shared.is_empty() {
            return;
        }
        if let Some(payload) = self.order.get(at).and_then(|entry| self.shared.get_mut(entry.row)) {
            *payload = None;
        }
    }

    /// Sorts the rows by their keys.
    ///
    /// # Errors
    /// The error of the call that ended, here and in [`retain_least`](Self::retain_least). The rows are then lost.
    pub(super) fn sort(&mut self) -> Result<()> {
        if self.order.len() < 2 {
            return Ok(());
        }
        let prefixes = self.load_prefixes()?;
        let Self { bytes, starts, order, radix_buffer, .. } = self;
        match prefixes.decisive {
            Some(mask) => sort_by_prefix(order, mask, radix_buffer)?,
            None => {
                let key = |entry: &SortEntry| {
                    let row = starts.get(entry.row).and_then(|&start| row_at(bytes, start));
                    row.map_or(&[][..], |row| if prefixes.ties_ascend { row.sort_key() } else { row.key })
                };
                sort_by_key(order, key, prefixes.common, radix_buffer)?;
            }
        }
        self.renumber()
    }

    /// Renumbers the rows in their order, so that reading them in order accesses `starts` and `shared` sequentially.
    fn renumber(&mut self) -> Result<()> {
        let Self { starts, shared, order, renumbered: (new_starts, new_shared), .. } = self;
        new_starts.clear();
        for entries in order.chunks(RENUMBERED_AT_ONCE) {
            work::take(entries.len())?;
            new_starts.extend(entries.iter().filter_map(|entry| starts.get(entry.row)));
        }
        std::mem::swap(starts, new_starts);
        if !shared.is_empty() {
            new_shared.clear();
            for entries in order.chunks(RENUMBERED_AT_ONCE) {
                work::take(entries.len())?;
                new_shared.extend(entries.iter().map(|entry| shared.get_mut(entry.row).and_then(Option::take)));
            }
            std::mem::swap(shared, new_shared);
        }
        order.iter_mut().enumerate().for_each(|(at, entry)| entry.row = at);
        Ok(())
    }

    /// Retains the `count` rows with the least keys, the greatest of them last, and frees the space of the others. Takes
    /// linear time, unless there are more than [`SELECTED_AT_ONCE`] rows, which are sorted.
    pub(super) fn retain_least(&mut self, count: usize) -> Result<()> {
        let Some(last) = count.checked_sub(1) else {
            self.clear();
            return Ok(());
        };
        if self.order.len() <= count {
            return Ok(());
        }
        let prefixes = self.load_prefixes()?;
        let Self { bytes, starts, order, shared, shared_bytes, radix_buffer, .. } = self;
        if order.len() > SELECTED_AT_ONCE {
            sort_counted(order, radix_buffer, |a, b| compare(bytes, starts, prefixes.common, a, b))?;
        } else {
            work::take(order.len())?;
            order.select_nth_unstable_by(last, |a, b| compare(bytes, starts, prefixes.common, a, b));
        }
        order.truncate(count);
        let greatest = order.last().map(|entry| entry.row);
        if order.len() > SORTED_AT_ONCE {
            sort_counted(order, radix_buffer, |a, b| a.row.cmp(&b.row))?;
        } else {
            order.sort_unstable_by_key(|entry| entry.row);
        }
        let mut end = 0;
        let mut moved_greatest = None;
        for (at, entry) in order.iter_mut().enumerate() {
            count_row(at)?;
            let Some(&start) = starts.get(entry.row) else { continue };
            let Some(length) = row_at(bytes, start).map(|row| row.written_len()) else { continue };
            bytes.copy_within(start..start + length, end);
            if greatest == Some(entry.row) {
                moved_greatest = Some(at);
            }
            // `at` never exceeds `entry.row`, and the rows before it have been moved or dropped.
            if !shared.is_empty() {
                shared.swap(at, entry.row);
            }
            if let Some(start) = starts.get_mut(at) {
                *start = end;
            }
            entry.row = at;
            end += length;
        }
        bytes.truncate(end);
        starts.truncate(count);
        shared.truncate(count);
        *shared_bytes = shared.iter().flatten().map(|payload| payload.len()).sum();
        if let Some(at) = moved_greatest {
            order.swap(at, last);
        }
        Ok(())
    }

    /// Sets the prefix of every sort entry to the eight bytes of its key after the prefix that all keys share.
    fn load_prefixes(&mut self) -> Result<Prefixes> {
        let Self { bytes, starts, order, .. } = self;
        let row = |entry: &SortEntry| starts.get(entry.row).and_then(|&start| row_at(bytes, start));
        let key = |entry: &SortEntry| row(entry).map_or(&[][..], |row| row.key);
        let first = order.first().map_or(&[][..], key);
        let mut common = first.len();
        let (mut longest, mut ties_ascend, mut last) = (0, true, None);
        for (position, entry) in order.iter().enumerate() {
            count_row(position)?;
            let Some(row) = row(entry) else { continue };
            if !share_prefix(row.key, first, common) {
                common = first.iter().zip(row.key).take_while(|(a, b)| a == b).count();
            }
            longest = longest.max(row.split);
            let tie = (leading(row.tie_key()), row.tie_key());
            ties_ascend = ties_ascend && last.is_none_or(|(last, before)| last < entry.row && before <= tie);
            last = Some((entry.row, tie));
        }
        // A prefix can include bytes of the tie key, which would decide next anyway. A short key is padded with zeros, so
        // equal prefixes do not imply equal keys.
        for (position, entry) in order.iter_mut().enumerate() {
            count_row(position)?;
            entry.prefix = leading(key(entry).get(common..).unwrap_or_default());
        }
        let deciding_bytes = longest.saturating_sub(common);
        let decisive = ties_ascend && deciding_bytes <= size_of::<u64>();
        Ok(Prefixes { common, ties_ascend, decisive: decisive.then(|| leading_bytes_mask(deciding_bytes)) })
    }
}

/// The result of [`Arena::load_prefixes`] for all keys together.
struct Prefixes {
    /// Number of bytes that all keys start with.
    common: usize,
    /// Whether rows with equal sort keys are already in the order of their tie keys.
    ties_ascend: bool,
    /// Mask of the prefix bits that alone decide the order of rows; rows with equal bits stay in insertion order. `None` if
    /// rows must be compared.
    decisive: Option<u64>,
}

/// Returns whether two keys share their first `bytes` bytes. Compares up to eight bytes as integers, which is faster than
/// comparing slices.
#[inline]
fn share_prefix(a: &[u8], b: &[u8], bytes: usize) -> bool {
    a.len() >= bytes
        && (leading(a) ^ leading(b)) & leading_bytes_mask(bytes) == 0
        && (bytes <= size_of::<u64>() || a.get(..bytes) == b.get(..bytes))
}

#[inline]
fn row_at(bytes: &[u8], start: usize) -> Option<Row<'_>> {
    bytes.get(start..).and_then(Row::parse)
}

#[inline]
fn compare(bytes: &[u8], starts: &[usize], common: usize, a: &SortEntry, b: &SortEntry) -> Ordering {
    let start = |entry: &SortEntry| starts.get(entry.row).copied();
    let rest = |entry| start(entry).and_then(|start| row_at(bytes, start)?.key.get(common..)).unwrap_or_default();
    a.prefix.cmp(&b.prefix).then_with(|| rest(a).cmp(rest(b)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrupt::looks;

    /// Returns an arena of rows with these sort and tie keys; payloads equal the sort keys.
    fn arena<K: AsRef<[u8]>>(keys: impl IntoIterator<Item = (K, K)>) -> Arena {
        let mut arena = Arena::default();
        for (sort_key, tie_key) in keys {
            arena.push(sort_key.as_ref(), tie_key.as_ref(), sort_key.as_ref(), usize::MAX).unwrap();
        }
        arena
    }

    fn keys(arena: &Arena) -> Vec<&str> {
        arena.iter().map(|row| std::str::from_utf8(row.key).unwrap()).collect()
    }

    fn sorted<const N: usize>(pushed: [(&str, &str); N]) -> Vec<String> {
        let mut arena = arena(pushed);
        arena.sort().unwrap();
        keys(&arena).into_iter().map(String::from).collect()
    }

    #[test]
    fn rows_are_sorted_by_their_whole_key() {
        let pushed = ["same.b", "same.a", "same.abcdefghz", "same.abcdefgh", "same.abcdefgha", "same."];
        let expected = ["same.", "same.a", "same.abcdefgh", "same.abcdefgha", "same.abcdefghz", "same.b"];
        assert_eq!(sorted(pushed.map(|key| (key, ""))), expected);
    }

    #[test]
    fn ties_are_sorted_by_the_tie_key_whether_prefixes_decide_or_not() {
        // Tie keys ascend, so prefixes decide.
        let pushed = [("same.2", "a"), ("same.1", "b"), ("same.0123", "b0"), ("same.1", "c")];
        assert_eq!(sorted(pushed), ["same.0123b0", "same.1b", "same.1c", "same.2a"]);
        // Tie keys do not ascend, so rows are compared.
        assert_eq!(sorted([("2", "a"), ("1", "c"), ("1", "b")]), ["1b", "1c", "2a"]);
    }

    #[test]
    fn rows_with_equal_long_keys_are_sorted_by_the_tie_key() {
        let sort_keys = ["inactive.longer", "active.longer.", "active.longer!", "inactive.short!"];
        let rows = (0..100_u8).map(|n| (sort_keys[usize::from(n % 4)], [n % 7, n]));
        let ascending = rows.clone().map(|(sort_key, [_, n])| (sort_key, vec![n]));
        let scattered = rows.map(|(sort_key, tie)| (sort_key, tie.to_vec()));
        for rows in [ascending.collect::<Vec<_>>(), scattered.collect()] {
            let mut arena = Arena::default();
            rows.iter().for_each(|(sort, tie)| arena.push(sort.as_bytes(), tie, b"", usize::MAX).unwrap());
            let mut expected: Vec<_> = rows.iter().map(|(sort, tie)| [sort.as_bytes(), tie].concat()).collect();
            expected.sort();
            arena.sort().unwrap();
            assert!(arena.iter().map(|row| row.key).eq(expected.iter().map(Vec::as_slice)));
        }
    }

    #[test]
    fn radix_sort_returns_the_same_order_as_comparisons() {
        let scattered = |n: u32| n.wrapping_mul(0x9e37_79b9);
        // Keys that differ in one byte, in several bytes that are not adjacent, in too many bytes for a radix sort, in none.
        for mask in [0x0000_ff00, 0x00ff_00ff, 0x0f00_030f, 0xffff_ffff, 0] {
            let rows = (0..3_000).map(|n| ((scattered(n) & mask).to_be_bytes(), n.to_be_bytes()));
            let mut expected: Vec<Vec<u8>> =
                rows.clone().map(|(sort_key, tie_key)| [sort_key, tie_key].concat()).collect();
            expected.sort();
            let mut arena = Arena::default();
            // The second round reuses the buffers.
            for _ in 0..2 {
                arena.clear();
                rows.clone().for_each(|(sort, tie)| arena.push(&sort, &tie, b"", usize::MAX).unwrap());
                arena.sort().unwrap();
                assert!(arena.iter().map(|row| row.key).eq(expected.iter().map(Vec::as_slice)), "{mask:x}");
            }
        }
    }

    #[test]
    fn keys_that_end_in_zero_bytes_sort_after_their_prefixes() {
        for pushed in [["a\0\0", "a", "a\0", "b"], ["a", "a\0", "a\0\0", "b"]] {
            assert_eq!(sorted(pushed.map(|key| ("", key))), ["a", "a\0", "a\0\0", "b"]);
        }
    }

    #[test]
    fn shared_payloads_are_lent_like_copied_ones_and_count_the_same() {
        let pushed = ["d", "a", "e", "c", "b"];
        let (mut copied, mut shared) = (arena(pushed.map(|key| (key, ""))), Arena::default());
        for key in pushed {
            shared.push_shared(key.as_bytes(), b"", key.as_bytes().into(), usize::MAX).unwrap();
        }
        assert_eq!(shared.size(), copied.size());
        let rows = |arena: &Arena| arena.iter().map(|row| (row.key.to_vec(), row.payload.to_vec())).collect::<Vec<_>>();
        for arena in [&mut copied, &mut shared] {
            arena.retain_least(3).unwrap();
            assert!(rows(arena).iter().all(|(key, payload)| key == payload));
            arena.push(b"a2", b"", b"a2", usize::MAX).unwrap();
            arena.sort().unwrap();
        }
        assert_eq!(rows(&shared), rows(&copied));
        assert_eq!(rows(&shared).len(), 4);
        assert_eq!(shared.size(), copied.size());
        shared.release(1);
        assert!(shared.get(1).is_none() && shared.get(2).is_some());
    }

    #[test]
    fn retain_least_frees_the_space_of_the_other_rows() {
        let mut arena = arena(["d", "a", "e", "c", "b"].map(|key| (key, "")));
        arena.retain_least(3).unwrap();
        assert_eq!(keys(&arena).last(), Some(&"c"), "the greatest retained row is last");
        assert_eq!(arena.size(), 3 * (HEADER + 2 + OVERHEAD));
        arena.sort().unwrap();
        assert_eq!(keys(&arena), ["a", "b", "c"]);
        assert!(arena.iter().all(|row| row.payload == row.key));
    }

    #[test]
    fn each_part_of_a_sort_ends_with_the_call() {
        let many = 300_000_u32;
        let scattered = |n: u32| n.wrapping_mul(0x9e37_79b9);
        // Keys that are sorted by their bytes, by eight bytes that differ, by a radix sort, and by several words.
        let keys: [fn(u32, u32) -> Vec<u8>; 3] = [
            |n, _| n.to_be_bytes().to_vec(),
            |_, n| (n & 0x00ff_00ff).to_be_bytes().to_vec(),
            |_, n| [&[b'a'; 20], &n.to_be_bytes()[..1], &[b'b'; 20], &n.to_be_bytes()[..]].concat(),
        ];
        for key in keys {
            let filled = || arena((0..many).map(|n| (key(n, scattered(n)), n.to_be_bytes().to_vec())));
            let mut arena = filled();
            let looks = looks::of(|| arena.sort());
            // A look for each 2^17 steps at least: two passes over the keys, the sort, the new numbers.
            assert!(looks > 4 * (many as usize >> 17), "{looks} looks");
            for ended in [0, looks / 2, looks * 3 / 4] {
                let mut arena = filled();
                looks::end_after(ended, || arena.sort());
            }
            looks::end_after(10, || filled().retain_least(280_000));
        }
    }
}
