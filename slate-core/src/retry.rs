use std::time::{Duration, Instant};

use crate::Result;

/// The first pause is about as long as a small transaction.
const FIRST_PAUSE: Duration = Duration::from_micros(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// Tries until it succeeds, fails otherwise than by a conflict, or `within` has passed since the first try.
///
/// Pauses double, and are spread by the clock's own noise so that two writers do not meet again.
pub(crate) fn on_conflict<R>(within: Duration, mut attempt: impl FnMut() -> Result<R>) -> Result<R> {
    let start = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        match attempt() {
            Err(error) if error.is_retryable() && start.elapsed() < within => {
                let noise = start.elapsed().subsec_nanos() % 1_000;
                std::thread::sleep(pause / 2 + pause * noise / 1_000);
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            result => return result,
        }
    }
}
