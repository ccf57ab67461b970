use branches::prefetch_read_data;

/// Asks for a value that will be read soon, so that its cache lines are on their way while something else is done.
///
/// Values lie apart in memory, and who goes from one to the next would wait for main memory at each. Of a long value only
/// the first lines are asked for: the processor fetches ahead by itself from there on.
#[inline]
pub fn prefetch(value: &[u8]) {
    const LINE: usize = 64;
    const LINES: usize = 2;
    for line in value.chunks(LINE).take(LINES) {
        prefetch_read_data::<u8, 0>(line.as_ptr());
    }
    // The last line may hold the beginning of no chunk: values need not begin where a line does.
    if let Some(last) = value.last() {
        prefetch_read_data::<u8, 0>(last);
    }
}
