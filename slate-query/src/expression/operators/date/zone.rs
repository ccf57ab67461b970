//! Time zones, and local dates of any year.
//!
//! `jiff` knows the years -9999 to 9999. The calendar repeats itself every 400 years, so a date in another year is
//! moved by a multiple of 400 years into a year that `jiff` knows.

use jiff::{
    Timestamp,
    civil::{Date, DateTime},
    tz::TimeZone,
};

use super::out_of_range;
use crate::Result;

/// The milliseconds of a day.
pub(super) const DAY: i64 = 86_400_000;

/// The days of a cycle of the calendar, 400 years, after which weekdays and leap years repeat themselves.
const CYCLE_DAYS: i64 = 146_097;
const CYCLE: i64 = CYCLE_DAYS * DAY;

/// The number of cycles before and after 1970 whose years `jiff` knows.
const KNOWN_CYCLES: i64 = 19;

/// A time zone. A local time is counted in milliseconds since 1970-01-01, 00:00, of that zone.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) enum Zone {
    /// A fixed number of milliseconds ahead of UTC.
    Fixed(i64),
    Named(TimeZone),
}

impl Zone {
    pub(in super::super) const UTC: Self = Self::Fixed(0);

    /// Creates the zone that is this number of minutes ahead of UTC.
    pub(super) fn of_minutes(minutes: i64) -> Self {
        Self::Fixed(minutes * 60_000)
    }

    /// Returns how many milliseconds the zone is ahead of UTC at a time.
    pub(super) fn offset(&self, millis: i64) -> i64 {
        match self {
            Self::Fixed(offset) => *offset,
            Self::Named(zone) => {
                let (known, _) = known(millis);
                let time = Timestamp::from_millisecond(known).unwrap_or_default();
                i64::from(zone.to_offset(time).seconds()) * 1_000
            }
        }
    }

    /// Returns the local time of a time in UTC, both in milliseconds.
    pub(super) fn local(&self, millis: i64) -> Result<i64> {
        millis.checked_add(self.offset(millis)).ok_or_else(out_of_range)
    }

    /// Converts a local time to UTC. If a local time occurs twice, returns the earlier one. If the clock skips the local time, returns the time
    /// after the gap.
    pub(super) fn millis(&self, local: i64) -> Result<i64> {
        match self {
            Self::Fixed(offset) => local.checked_sub(*offset).ok_or_else(out_of_range),
            Self::Named(zone) => {
                let (known, shift) = known(local);
                let zoned = civil(known).to_zoned_datetime(zone.clone()).map_err(|_| out_of_range())?;
                zoned.timestamp().as_millisecond().checked_add(shift).ok_or_else(out_of_range)
            }
        }
    }
}

/// Returns a time in a year that `jiff` knows, and how much later the given time is: a whole number of cycles.
fn known(millis: i64) -> (i64, i64) {
    let cycles = millis / CYCLE;
    let shift = (cycles - cycles.clamp(-KNOWN_CYCLES, KNOWN_CYCLES)) * CYCLE;
    (millis - shift, shift)
}

fn civil(known: i64) -> DateTime {
    TimeZone::UTC.to_datetime(Timestamp::from_millisecond(known).unwrap_or_default())
}

/// A local time as a date and a time of the day.
#[derive(Clone, Copy, Debug)]
pub(super) struct Local {
    /// The local time, moved by whole cycles of the calendar (400 years) into the years 1970 to 2369, where `jiff` can
    /// compute with it.
    within: DateTime,
    cycles: i64,
}

impl Local {
    pub(super) fn new(local: i64) -> Self {
        Self { within: civil(local.rem_euclid(CYCLE)), cycles: local.div_euclid(CYCLE) }
    }

    /// Returns the time of the day, and everything about the date that repeats itself with the calendar.
    pub(super) fn within(&self) -> DateTime {
        self.within
    }

    pub(super) fn year(&self) -> i64 {
        i64::from(self.within.year()) + 400 * self.cycles
    }

    pub(super) fn iso_year(&self) -> i64 {
        i64::from(self.within.date().iso_week_date().year()) + 400 * self.cycles
    }

    /// Returns the months since the year 0.
    pub(super) fn month_number(&self) -> i64 {
        self.year() * 12 + i64::from(self.within.month()) - 1
    }
}

/// Returns the days since 1970 of a day in a month, or of the last one of a shorter month. Months are counted since the
/// year 0.
pub(super) fn day_number(month: i64, day: i8) -> Result<i64> {
    let year = month.div_euclid(12) - 1_970;
    let (cycles, within) = (year.div_euclid(400), 1_970 + year.rem_euclid(400));
    let place = i8::try_from(month.rem_euclid(12) + 1).map_err(|_| out_of_range())?;
    let first = Date::new(i16::try_from(within).map_err(|_| out_of_range())?, place, 1).map_err(|_| out_of_range())?;
    let date = first.with().day(day.min(first.days_in_month())).build().map_err(|_| out_of_range())?;
    let days = cycles.checked_mul(CYCLE_DAYS).and_then(|days| days.checked_add(date_number(date)));
    days.ok_or_else(out_of_range)
}

/// Returns the days since 1970.
fn date_number(date: Date) -> i64 {
    date.since(jiff::civil::date(1970, 1, 1)).map_or(0, |span| i64::from(span.get_days()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_years_agree_with_the_calendar() {
        for (millis, year, month, day) in [
            (0, 1970, 1, 1),
            (253_402_300_800_000, 10_000, 1, 1),
            (i64::MAX, 292_278_994, 8, 17),
            (i64::MIN, -292_275_055, 5, 16),
            (-62_198_755_200_000, -1, 1, 1),
        ] {
            let local = Local::new(millis);
            assert_eq!((local.year(), local.within().month(), local.within().day()), (year, month, day), "{millis}");
            let number = day_number(local.month_number(), local.within().day()).unwrap();
            assert_eq!(number, millis.div_euclid(DAY), "{millis}");
        }
    }

    #[test]
    fn zones_convert_there_and_back_in_any_year() {
        let berlin = Zone::Named(TimeZone::get("Europe/Berlin").unwrap());
        let wide = Zone::Fixed(-(99 * 60 + 99) * 60_000);
        for millis in [0, 1_720_000_000_000, 253_402_300_800_000, 9_000_000_000_000_000, -9_000_000_000_000_000] {
            for zone in [&berlin, &wide, &Zone::UTC] {
                assert_eq!(zone.millis(zone.local(millis).unwrap()).unwrap(), millis, "{zone:?} {millis}");
            }
        }
        assert_eq!(berlin.offset(9_000_014_000_000_000 + 180 * DAY), 7_200_000);
        assert!(Zone::Fixed(1).local(i64::MAX).is_err());
    }

    #[test]
    fn a_day_beyond_the_month_is_its_last() {
        assert_eq!(day_number(2024 * 12 + 1, 31).unwrap(), date_number(jiff::civil::date(2024, 2, 29)));
        assert_eq!(day_number(2023 * 12 + 1, 31).unwrap(), date_number(jiff::civil::date(2023, 2, 28)));
    }
}
