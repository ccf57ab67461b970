//! The time, as documents hold it.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

/// Milliseconds since 1970.
pub(crate) fn now_millis() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// A BSON timestamp of that time: the second in the high half, in the low half a number that makes it the only one of its
/// kind in this process. One that was given for a later second is not gone back behind.
pub(crate) fn timestamp(now_millis: i64) -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let seconds = u64::try_from(now_millis / 1_000).unwrap_or_default();
    let least = (seconds << 32) | 1;
    let next = |last: u64| Some(least.max(last + 1));
    LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).map_or(least, |last| least.max(last + 1))
}
