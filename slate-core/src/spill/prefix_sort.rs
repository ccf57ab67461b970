use slate_query::{raw::leading, work};

use super::counted_sort::{SORTED_AT_ONCE, count_row, sort_counted, sort_in_runs};
use crate::Result;

/// One row of an arena in the order of a sort. Moving rows in a sort moves only these entries.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SortEntry {
    /// Bytes of the row's key that decide most comparisons without reading the row.
    pub(super) prefix: u64,
    /// Number of the row in its arena.
    pub(super) row: usize,
}

/// Sorts entries by their keys; entries with equal keys stay in their order. The keys share the first `common` bytes, and the
/// prefixes are the eight bytes after these.
///
/// Entries with equal prefixes are sorted by the eight bytes after what these keys share, and so on: a multikey sort over words
/// (Bentley and Sedgewick, Fast Algorithms for Sorting and Searching Strings, 1997), which reads each key once per word instead
/// of once per comparison.
///
/// # Errors
/// The error of the call that ended, here and below; the order is then any.
pub(super) fn sort_by_key<'k>(
    order: &mut [SortEntry],
    key: impl Fn(&SortEntry) -> &'k [u8],
    common: usize,
    buffer: &mut Vec<SortEntry>,
) -> Result<()> {
    sort_words(order, &key, (common, common), MAX_WORDS, buffer)
}

/// Words of a key by which entries are sorted before whole keys are compared. It bounds the recursion.
const MAX_WORDS: usize = 8;
/// Up to this many entries with equal prefixes, comparing their keys is faster than reading the next word of each.
const FEW_EQUAL: usize = 8;
/// Maximum number of entries that are sorted by their whole keys without checking whether the call has ended.
const COMPARED_AT_ONCE: usize = 1 << 14;

/// `place` is the offset in the keys at which the prefixes begin.
fn sort_words<'k>(
    order: &mut [SortEntry],
    key: &impl Fn(&SortEntry) -> &'k [u8],
    (common, place): (usize, usize),
    words: usize,
    buffer: &mut Vec<SortEntry>,
) -> Result<()> {
    sort_counted(order, buffer, |a, b| a.prefix.cmp(&b.prefix))?;
    for equal in order.chunk_by_mut(|a, b| a.prefix == b.prefix).filter(|equal| equal.len() > 1) {
        work::take(equal.len())?;
        let after = |entry: &SortEntry, place: usize| key(entry).get(place..).unwrap_or_default();
        if words == 0 || equal.len() <= FEW_EQUAL {
            // A short key is padded with zeros, so equal prefixes do not imply equal bytes.
            sort_in_runs(equal, COMPARED_AT_ONCE, buffer, |a, b| after(a, common).cmp(after(b, common)))?;
            continue;
        }
        let next = place + size_of::<u64>();
        let first = equal.first().map_or(&[][..], &key);
        let rest = first.get(next..).unwrap_or_default();
        let (mut shared, mut are_same) = (rest.len(), true);
        for (position, entry) in equal.iter().enumerate() {
            count_row(position)?;
            let key = key(entry);
            let pairs = rest.iter().zip(key.get(next..).unwrap_or_default()).take(shared);
            shared = pairs.take_while(|(a, b)| a == b).count();
            are_same = are_same && key.len() == first.len();
        }
        if are_same && shared == rest.len() {
            continue;
        }
        let place = next + shared;
        for (position, entry) in equal.iter_mut().enumerate() {
            count_row(position)?;
            entry.prefix = leading(after(entry, place));
        }
        sort_words(equal, key, (common, place), words - 1, buffer)?;
    }
    Ok(())
}

/// Sorts entries, given in row order, by the bits of their prefixes under `mask`. Entries with equal bits stay in row
/// order.
pub(super) fn sort_by_prefix(order: &mut Vec<SortEntry>, mask: u64, buffer: &mut Vec<SortEntry>) -> Result<()> {
    /// From this many differing bytes on, comparison sort is faster than one radix pass per byte.
    const TOO_MANY_BYTES: usize = 4;
    /// Up to this many rows, comparison sort is faster than radix passes over 256 counters.
    const FEW_ROWS: usize = 256;
    let first = order.first().map_or(0, |entry| entry.prefix);
    let differing = order.iter().fold(0, |differing, entry| differing | (entry.prefix ^ first)) & mask;
    let byte_shifts = || (0..u64::BITS).step_by(8).filter(|shift| differing >> shift & 0xff != 0);
    work::take(order.len())?;
    if order.len() <= FEW_ROWS || byte_shifts().count() >= TOO_MANY_BYTES {
        if order.len() > SORTED_AT_ONCE {
            return sort_counted(order, buffer, |a, b| (a.prefix & mask).cmp(&(b.prefix & mask)));
        }
        order.sort_unstable_by_key(|entry| (entry.prefix & mask, entry.row));
        return Ok(());
    }
    // LSD radix sort (Knuth, The Art of Computer Programming, 5.2.5): one stable counting sort per byte, last byte first.
    for shift in byte_shifts() {
        let byte = |entry: &SortEntry| usize::from((entry.prefix >> shift).to_le_bytes()[0]);
        let mut next = [0_usize; 256];
        work::take(order.len())?;
        for entry in order.iter() {
            if let Some(count) = next.get_mut(byte(entry)) {
                *count += 1;
            }
        }
        let mut start = 0;
        for count in &mut next {
            start += std::mem::replace(count, start);
        }
        buffer.resize(order.len(), SortEntry::default());
        for (position, entry) in order.iter().enumerate() {
            count_row(position)?;
            let to = next.get_mut(byte(entry)).map(|next| std::mem::replace(next, *next + 1));
            if let Some(to) = to.and_then(|to| buffer.get_mut(to)) {
                *to = *entry;
            }
        }
        std::mem::swap(order, buffer);
    }
    Ok(())
}

/// Returns a mask of the `bytes` most significant bytes of a word.
#[inline]
pub(super) fn leading_bytes_mask(bytes: usize) -> u64 {
    if bytes < size_of::<u64>() { !(u64::MAX >> (u8::BITS as usize * bytes)) } else { u64::MAX }
}
