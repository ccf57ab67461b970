//! The current time in the forms that documents contain.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

/// Returns the milliseconds since 1970-01-01 UTC.
pub(crate) fn now_millis() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// The greatest timestamp that this process generated or passed to [`hear`].
static LAST: AtomicU64 = AtomicU64::new(0);

/// Makes timestamps that are generated from now on greater than `timestamp`.
pub(crate) fn hear(timestamp: u64) {
    LAST.fetch_max(timestamp, Ordering::Relaxed);
}

/// Returns the greatest timestamp that this process generated or passed to [`hear`].
pub(crate) fn last() -> u64 {
    LAST.load(Ordering::Relaxed)
}

/// Returns a BSON timestamp that is unique and increasing in this process: the seconds in the high half, a counter in
/// the low half. If the clock goes back, continues from the greatest timestamp.
pub(crate) fn timestamp(now_millis: i64) -> u64 {
    let seconds = u64::try_from(now_millis / 1_000).unwrap_or_default();
    let least = (seconds << 32) | 1;
    let next = |last: u64| Some(least.max(last + 1));
    LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).map_or(least, |last| least.max(last + 1))
}
