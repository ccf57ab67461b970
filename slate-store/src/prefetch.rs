use branches::prefetch_read_data;

/// The bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// Asks for a value that will be read soon, so that its cache lines are on their way while something else is done.
///
/// Values lie apart in memory, and who goes from one to the next would wait for main memory at each. The first three
/// lines are asked for, and the last, which a reader of BSON looks at; who reads all of them is helped by the processor, which
/// sees what comes next.
#[inline]
pub(crate) fn prefetch(value: &[u8]) {
    // A value without bytes may lie nowhere.
    let [first, .., last] = value else { return };
    prefetch_read_data::<u8, 0>(first);
    prefetch_read_data::<u8, 0>(last);
    for next in [value.get(LINE), value.get(2 * LINE)].into_iter().flatten() {
        prefetch_read_data::<u8, 0>(next);
    }
}
