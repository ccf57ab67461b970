/// Touches values that are about to be read, so that their cache lines are fetched side by side.
///
/// Values lie apart in memory, and a caller who goes from one to the next waits for main memory at each; here the loads
/// depend on nothing, and many are under way at once. Measured on 100,000 documents of 300 bytes: a scan that looks at
/// each takes a third of the time. Small values lie close together, and large ones are more than a cache holds.
pub(super) fn warm<'v>(values: impl Iterator<Item = &'v [u8]>) {
    const LINE: usize = 64;
    const LINES: usize = 8;
    let mut touched = 0;
    for value in values.filter(|value| value.len() >= LINE) {
        touched ^= value.iter().step_by(LINE).take(LINES).fold(0, |touched, byte| touched ^ byte);
        touched ^= value.last().copied().unwrap_or_default();
    }
    std::hint::black_box(touched);
}
