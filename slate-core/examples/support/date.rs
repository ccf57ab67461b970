//! Parses ISO 8601 dates as exports write them.

/// Returns the milliseconds since 1970 of a date such as `2009-04-01T00:00:00.000-0700`. The time can end after any
/// part. Without an offset it is UTC. Digits beyond milliseconds are dropped.
pub(crate) fn millis(text: &str) -> Option<i64> {
    let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, ""));
    let mut date = date.splitn(3, '-');
    let (year, month, day) = (digits(date.next()?, 4)?, digits(date.next()?, 2)?, digits(date.next()?, 2)?);
    if !(1..=12).contains(&month) || !(1..=days_in(year, month)).contains(&day) {
        return None;
    }
    let (clock, offset) = match time.find(['Z', 'z', '+', '-']) {
        Some(place) => (time.get(..place)?, offset(time.get(place..)?)?),
        None => (time, 0),
    };
    Some(days(year, month, day) * 86_400_000 + of_day(clock)? - offset * 60_000)
}

/// Parses exactly this many digits.
fn digits(text: &str, count: usize) -> Option<i64> {
    (text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

/// Parses `HH:MM:SS.mmm`, where all parts except the first can be missing, into milliseconds.
fn of_day(clock: &str) -> Option<i64> {
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let mut parts = clock.split(':');
    let mut part = |limit| match parts.next() {
        None | Some("") => Some(0),
        Some(text) => digits(text, 2).filter(|number| *number < limit),
    };
    let (hours, minutes, seconds) = (part(24)?, part(60)?, part(60)?);
    let millis = digits(format!("{fraction:0<3}").get(..3)?, 3)?;
    let ends = parts.next().is_none() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    ends.then_some(((hours * 60 + minutes) * 60 + seconds) * 1000 + millis)
}

/// Parses `Z`, `+HH`, `+HHMM` or `+HH:MM` into minutes.
fn offset(text: &str) -> Option<i64> {
    let (sign, text) = match text.split_at_checked(1)? {
        ("Z" | "z", "") => return Some(0),
        ("+", text) => (1, text),
        ("-", text) => (-1, text),
        _ => return None,
    };
    let (hours, minutes) = text.split_at_checked(2)?;
    let minutes = minutes.strip_prefix(':').unwrap_or(minutes);
    let minutes = if minutes.is_empty() { 0 } else { digits(minutes, 2)? };
    Some(sign * (digits(hours, 2)? * 60 + minutes))
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the days since 1970 for years from 0 on (Howard Hinnant's `days_from_civil`).
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::millis;

    #[test]
    fn dates_are_read_with_and_without_parts() {
        assert_eq!(millis("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(millis("2009-04-01T00:00:00.000-0700"), Some(1_238_569_200_000));
        assert_eq!(millis("2009-04-01T00:00:00.000-07:00"), Some(1_238_569_200_000));
        assert_eq!(millis("2024-02-29"), Some(1_709_164_800_000));
        assert_eq!(millis("1969-12-31T23:59:59.9Z"), Some(-100));
        assert_eq!(millis("2024-02-29T12:30+02"), Some(1_709_202_600_000));
        for wrong in ["", "2009", "2023-02-29", "2009-04-01T25:00Z", "2009-04-01T00:00:00.000-0700x", "yesterday"] {
            assert_eq!(millis(wrong), None, "{wrong}");
        }
    }
}
