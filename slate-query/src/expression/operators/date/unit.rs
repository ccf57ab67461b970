use jiff::civil::Weekday;

use super::super::super::{Evaluated, arguments::wrong_type};
use crate::{Code, Error, Result};

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Year,
    Quarter,
    Month,
    Week,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
}

impl Unit {
    /// Returns the unit that an operand names; `None` for null.
    pub(super) fn of(name: &str, operand: &Evaluated<'_>) -> Result<Option<Self>> {
        let Some(value) = operand.present() else { return Ok(None) };
        let text = value.as_str().ok_or_else(|| wrong_type(name, 5_439_013, "a string as 'unit'", operand))?;
        Self::named(text).map(Some)
    }

    /// Returns the unit of this name; fails with `FailedToParse` (9) if there is none.
    pub(crate) fn named(text: &str) -> Result<Self> {
        Ok(match text {
            "year" => Self::Year,
            "quarter" => Self::Quarter,
            "month" => Self::Month,
            "week" => Self::Week,
            "day" => Self::Day,
            "hour" => Self::Hour,
            "minute" => Self::Minute,
            "second" => Self::Second,
            "millisecond" => Self::Millisecond,
            _ => return Err(Error::new(Code::FAILED_TO_PARSE, format!("unknown unit of time: '{text}'"))),
        })
    }

    /// Returns the milliseconds of a unit in UTC; `None` for a unit longer than a week.
    pub(crate) fn length(self) -> Option<i64> {
        match self {
            Self::Week => Some(7 * 86_400_000),
            Self::Day => Some(86_400_000),
            _ => self.millis(),
        }
    }

    /// Returns the milliseconds of a unit whose length is always the same; `None` for others.
    pub(super) fn millis(self) -> Option<i64> {
        match self {
            Self::Hour => Some(3_600_000),
            Self::Minute => Some(60_000),
            Self::Second => Some(1_000),
            Self::Millisecond => Some(1),
            Self::Year | Self::Quarter | Self::Month | Self::Week | Self::Day => None,
        }
    }

    /// Returns the months in a unit; `None` for units shorter than a month.
    pub(super) fn months(self) -> Option<i64> {
        match self {
            Self::Year => Some(12),
            Self::Quarter => Some(3),
            Self::Month => Some(1),
            _ => None,
        }
    }
}

/// Returns the first day of the week; `None` for null. For any other unit than weeks returns Sunday, without reading
/// the operand.
pub(super) fn first_day(name: &str, unit: Unit, operand: &Evaluated<'_>) -> Result<Option<Weekday>> {
    if unit == Unit::Week { start_of_week(name, operand) } else { Ok(Some(Weekday::Sunday)) }
}

pub(super) fn check_start_of_week(name: &str, constant: &Evaluated<'_>) -> Result<()> {
    start_of_week(name, constant).map(drop)
}

/// Returns the first day of the week; `None` for null.
fn start_of_week(name: &str, operand: &Evaluated<'_>) -> Result<Option<Weekday>> {
    let Some(value) = operand.present() else { return Ok(None) };
    let text = value.as_str().ok_or_else(|| wrong_type(name, 5_439_015, "a string as 'startOfWeek'", operand))?;
    Ok(Some(match text.to_ascii_lowercase().as_str() {
        "monday" | "mon" => Weekday::Monday,
        "tuesday" | "tue" => Weekday::Tuesday,
        "wednesday" | "wed" => Weekday::Wednesday,
        "thursday" | "thu" => Weekday::Thursday,
        "friday" | "fri" => Weekday::Friday,
        "saturday" | "sat" => Weekday::Saturday,
        "sunday" | "sun" => Weekday::Sunday,
        _ => return Err(Error::new(Code::FAILED_TO_PARSE, format!("unknown day of the week: '{text}'"))),
    }))
}
