use branches::prefetch_read_data;

/// The size of a cache line in bytes.
pub(crate) const LINE: usize = 64;

/// Prefetches a value that will be read soon. Values are scattered in memory, so reading one after another would wait
/// for main memory at each.
///
/// Prefetches the first three cache lines and the last one, which a reader of BSON checks. The processor itself
/// prefetches the rest of a value that is read in full.
#[inline]
pub(crate) fn prefetch(value: &[u8]) {
    // An empty value may have no valid address.
    let [first, .., last] = value else { return };
    prefetch_read_data::<u8, 0>(first);
    prefetch_read_data::<u8, 0>(last);
    for next in [value.get(LINE), value.get(2 * LINE)].into_iter().flatten() {
        prefetch_read_data::<u8, 0>(next);
    }
}
