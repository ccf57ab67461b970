use jiff::{
    Timestamp,
    civil::{Date, DateTime},
    tz::TimeZone,
};

/// Returns the milliseconds since 1970 of an ISO 8601 date such as `2009-04-01T00:00:00.000-0700`, `2009-04-01 00:00` or
/// `2009-04-01`. Without an offset it is UTC. Digits beyond milliseconds are dropped.
pub(crate) fn millis(text: &str) -> Option<i64> {
    let timestamp = text.parse::<Timestamp>().ok().or_else(|| {
        let time = text.parse::<DateTime>().ok().or_else(|| Some(text.parse::<Date>().ok()?.into()))?;
        TimeZone::UTC.to_timestamp(time).ok()
    })?;
    // Rounds down, also before 1970.
    i64::try_from(timestamp.as_nanosecond().div_euclid(1_000_000)).ok()
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
        for wrong in ["", "2009", "2023-02-29", "2009-04-01T25:00Z", "2009-04-01T00:00:00.000-0700x", "yesterday"] {
            assert_eq!(millis(wrong), None, "{wrong}");
        }
    }
}
