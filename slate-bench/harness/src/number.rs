//! Number conversions that are exact for all values in a report.

use std::time::Duration;

/// Converts a count to a float; exact below 2⁵³.
#[expect(clippy::cast_precision_loss, reason = "counts and nanoseconds of a bench are far below 2⁵³")]
pub fn float(count: u64) -> f64 {
    count as f64
}

/// Converts a length or position to a count.
pub fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// Converts a duration to nanoseconds; the largest is 584 years.
pub fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Rounds a non-negative number to a count.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast of a float saturates")]
pub fn rounded(number: f64) -> u64 {
    number.round() as u64
}

/// Returns `whole / part`, or 0 if `part` is 0.
pub fn ratio(whole: f64, part: f64) -> f64 {
    if part > 0.0 { whole / part } else { 0.0 }
}
