use branches::prefetch_read_data;

use crate::{bounds::Heading, prefetch::LINE};

/// Asks for the value that comes next: in a page they lie end to end, so for as much memory behind a value, or before it, as the
/// value takes. Of short values the processor sees itself what comes next.
#[inline]
pub(super) fn prefetch_next(value: &[u8], heading: Heading) {
    /// Of longer values who looks at a field or two reads the beginning.
    const MOST: usize = 8;
    let from = match heading {
        Heading::Forward => value.as_ptr().wrapping_add(value.len()),
        Heading::Back => value.as_ptr().wrapping_sub(value.len()),
    };
    for line in 0..(value.len() / LINE).min(MOST) {
        prefetch_read_data::<u8, 0>(from.wrapping_add(line * LINE));
    }
}
