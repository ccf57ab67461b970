use jiff::{
    civil::{DateTime, Time, date},
    fmt::temporal::Pieces,
    tz::Offset,
};

/// Returns the milliseconds since 1970 of an ISO 8601 date such as `2009-04-01T00:00:00.000-0700`, `2009-04-01 00:00` or
/// `2009-04-01`; `None` for any other text. Without an offset it is UTC. Digits beyond milliseconds are dropped.
pub(crate) fn millis(text: &str) -> Option<i64> {
    floor_millis(nanos(text)?)
}

/// Returns the nanoseconds since 1970 of an ISO 8601 date, as [`millis`] reads it.
pub(crate) fn nanos(text: &str) -> Option<i128> {
    let pieces = Pieces::parse(text).ok().filter(|pieces| pieces.time_zone_annotation().is_none())?;
    let local = DateTime::from_parts(pieces.date(), pieces.time().unwrap_or(Time::midnight()));
    Some(nanos_at(local, pieces.to_numeric_offset()))
}

/// Returns the nanoseconds since 1970 of a date and time at an offset. Without an offset it is UTC.
pub(crate) fn nanos_at(local: DateTime, offset: Option<Offset>) -> i128 {
    // jiff's `Timestamp` ends a day before the year 10000, but the end of 9999 is a usual date for "never".
    let offset = offset.map_or(0, |offset| i128::from(offset.seconds()));
    local.duration_since(date(1970, 1, 1).at(0, 0, 0, 0)).as_nanos() - offset * 1_000_000_000
}

/// Converts nanoseconds to milliseconds.
///
/// # Errors
/// Fails on digits beyond milliseconds, which a date does not store.
pub(crate) fn whole_millis(nanos: i128) -> Result<i64, &'static str> {
    let whole = Some(nanos).filter(|nanos| nanos % 1_000_000 == 0).and_then(floor_millis);
    whole.ok_or("has digits beyond milliseconds, which a date does not keep")
}

/// Rounds nanoseconds down to milliseconds, also before 1970. `None` if the result exceeds an int64.
pub(crate) fn floor_millis(nanos: i128) -> Option<i64> {
    i64::try_from(nanos.div_euclid(1_000_000)).ok()
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
        assert_eq!(millis("2024-02-29 12:30:00"), Some(1_709_209_800_000));
        assert_eq!(millis("1969-12-31T23:59:59.9Z"), Some(-100));
        assert_eq!(millis("1969-12-31T23:59:59.9999Z"), Some(-1));
        assert_eq!(millis("2024-02-29T12:30+02"), Some(1_709_202_600_000));
        assert_eq!(millis("9999-12-31T23:59:59.999Z"), Some(253_402_300_799_999));
        assert_eq!(millis("0001-01-01"), Some(-62_135_596_800_000));
        for wrong in [
            "",
            "2009",
            "2023-02-29",
            "2009-04-01T25:00Z",
            "2009-04-01T00:00:00.000-0700x",
            "2024-02-29T00:00[Europe/Oslo]",
            "yesterday",
        ] {
            assert_eq!(millis(wrong), None, "{wrong}");
        }
    }
}
