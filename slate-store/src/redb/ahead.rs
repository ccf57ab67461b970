use branches::prefetch_read_data;

use crate::{bounds::Heading, prefetch::LINE};

/// Prefetches the next value. Values are stored end to end in a page, so this prefetches as many bytes as `value` has,
/// after it or, backwards, before it. Short values are left to the processor's own prefetching.
#[inline]
pub(super) fn prefetch_next(value: &[u8], heading: Heading) {
    /// A longer value is prefetched only up to this many cache lines, because many callers read only its first fields.
    const MOST: usize = 8;
    let from = match heading {
        Heading::Forward => value.as_ptr().wrapping_add(value.len()),
        Heading::Back => value.as_ptr().wrapping_sub(value.len()),
    };
    for line in 0..(value.len() / LINE).min(MOST) {
        prefetch_read_data::<u8, 0>(from.wrapping_add(line * LINE));
    }
}
