//! Conversions between numbers that lose nothing a report could show.

use std::time::Duration;

/// A count as a number with a fraction: exact below 2⁵³.
#[expect(clippy::cast_precision_loss, reason = "counts and nanoseconds of a bench are far below 2⁵³")]
pub fn float(count: u64) -> f64 {
    count as f64
}

/// A length or a place as a count.
pub fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// A duration in nanoseconds: enough for 584 years.
pub fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A non-negative number rounded to a count.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast of a float saturates")]
pub fn rounded(number: f64) -> u64 {
    number.round() as u64
}

/// How often `part` goes into `whole`; 0 where there is no part.
pub fn ratio(whole: f64, part: f64) -> f64 {
    if part > 0.0 { whole / part } else { 0.0 }
}
