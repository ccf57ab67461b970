use branches::prefetch_read_data;

use crate::bounds::Heading;

/// The bytes of a cache line.
const LINE: usize = 64;

/// Asks for a value that will be read soon, so that its cache lines are on their way while something else is done.
///
/// Values lie apart in memory, and who goes from one to the next would wait for main memory at each. The first three
/// lines are asked for, and the last, which a reader of BSON looks at; who reads all of them is helped by the processor, which
/// sees what comes next.
#[inline]
pub fn prefetch(value: &[u8]) {
    // A value without bytes may lie nowhere.
    let [first, .., last] = value else { return };
    prefetch_read_data::<u8, 0>(first);
    prefetch_read_data::<u8, 0>(last);
    for next in [value.get(LINE), value.get(2 * LINE)].into_iter().flatten() {
        prefetch_read_data::<u8, 0>(next);
    }
}

/// Asks for as much memory behind a value, or before it, as the value takes: where values lie end to end, that is the one that
/// comes next. Of short values the processor sees itself what comes next.
#[inline]
pub(crate) fn prefetch_beside(value: &[u8], heading: Heading) {
    /// Of longer ones who looks at a field or two reads the beginning.
    const MOST: usize = 8;
    let from = match heading {
        Heading::Forward => value.as_ptr().wrapping_add(value.len()),
        Heading::Back => value.as_ptr().wrapping_sub(value.len()),
    };
    for line in 0..(value.len() / LINE).min(MOST) {
        prefetch_read_data::<u8, 0>(from.wrapping_add(line * LINE));
    }
}
