//! Formats times, counts and bytes.

use std::time::Duration;

use crate::number::{float, nanoseconds};

/// Formats a time with three significant digits and a suitable unit: `1.34 ms`, `850 ns`, `12.1 s`.
pub fn duration(time: Duration) -> String {
    let nanoseconds = float(nanoseconds(time));
    let (value, unit) = match nanoseconds {
        n if n < 1e3 => (n, "ns"),
        n if n < 1e6 => (n / 1e3, "µs"),
        n if n < 1e9 => (n / 1e6, "ms"),
        n => (n / 1e9, "s"),
    };
    format!("{} {unit}", three_digits(value))
}

/// Formats an integer with thousands separators: `100,000`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats bytes with a decimal unit: `2.70 MB`.
pub fn bytes(number: u64) -> String {
    let bytes = float(number);
    let (value, unit) = match bytes {
        n if n < 1e3 => return format!("{number} B"),
        n if n < 1e6 => (n / 1e3, "kB"),
        n if n < 1e9 => (n / 1e6, "MB"),
        n => (n / 1e9, "GB"),
    };
    format!("{} {unit}", three_digits(value))
}

/// Formats a factor: `10.8×`.
pub fn factor(number: f64) -> String {
    format!("{}×", three_digits(number))
}

/// Formats a fraction as per cent: `4 %`.
pub fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Formats a number of records: `10k`, `1M`, `300`.
pub fn size(records: u64) -> String {
    match records {
        n if n >= 1_000_000 && n.is_multiple_of(1_000_000) => format!("{}M", n / 1_000_000),
        n if n >= 1_000 && n.is_multiple_of(1_000) => format!("{}k", n / 1_000),
        n => count(n),
    }
}

/// Formats three significant digits: `0.0123`, `1.23`, `12.3`, `123`, `1234`.
pub fn three_digits(value: f64) -> String {
    let decimals = match value {
        v if v >= 99.95 || v <= 0.0 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.9995 => 2,
        v if v >= 0.09995 => 3,
        _ => 4,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_and_their_unit() {
        let shown = [1, 999, 1_340, 52_000, 999_949, 1_300_000, 425_400_000, 12_130_000_000]
            .map(|nanoseconds| duration(Duration::from_nanos(nanoseconds)));
        assert_eq!(shown, ["1.00 ns", "999 ns", "1.34 µs", "52.0 µs", "1000 µs", "1.30 ms", "425 ms", "12.1 s"]);
    }

    #[test]
    fn counts_are_grouped() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn sizes_and_bytes_have_their_units() {
        assert_eq!([300, 10_000, 100_000, 1_000_000, 1_500].map(size), ["300", "10k", "100k", "1M", "1,500"]);
        assert_eq!([12, 65_300, 2_700_000].map(bytes), ["12 B", "65.3 kB", "2.70 MB"]);
    }

    #[test]
    fn small_numbers_keep_their_digits() {
        assert_eq!([0.0, 0.0025, 0.52, 1.8].map(three_digits), ["0", "0.0025", "0.520", "1.80"]);
    }
}
