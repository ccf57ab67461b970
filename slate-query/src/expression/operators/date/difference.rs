//! `$dateDiff`: how many boundaries of a unit are between two dates.

use jiff::{ZonedDateTime, civil::Date};

use super::{
    super::{
        super::{Evaluated, Expression, Variables},
        named::{Parts, operator},
    },
    local, time,
    unit::{Unit, start_of_week},
    zone, zone_part,
};
use crate::{Result, raw::Value};

const NAME: &str = "$dateDiff";

pub(in super::super) fn parse(name: &str, operand: Value<'_>, variables: &Variables) -> Result<Expression> {
    let names = ["startDate", "endDate", "unit", "timezone", "startOfWeek"];
    let mut parts = Parts::parse(name, operand, &names, variables, (5_166_301, 5_166_302))?;
    let mut operands = Vec::new();
    for (place, (part, code)) in
        [("startDate", 5_166_303), ("endDate", 5_166_304), ("unit", 5_166_305)].into_iter().enumerate()
    {
        operands.push(parts.need(place, name, part, code)?);
    }
    operands.extend([zone_part(&mut parts, 3), parts.or(4, &Evaluated::string("sunday"))]);
    operator(name, operands, compute)
}

/// The days since 1970.
pub(super) fn day_number(date: Date) -> i64 {
    let epoch = jiff::civil::date(1970, 1, 1);
    date.since(epoch).map_or(0, |span| i64::from(span.get_days()))
}

pub(super) fn month_number(date: &ZonedDateTime) -> i64 {
    i64::from(date.year()) * 12 + i64::from(date.month()) - 1
}

fn compute<'v>(values: &mut [Evaluated<'v>]) -> Result<Evaluated<'v>> {
    let [start, end, unit, place, first_day] = values else { return Ok(Evaluated::NULL) };
    let (start, end) = (time(NAME, start, 5_166_307)?, time(NAME, end, 5_166_307)?);
    let unit = Unit::of(NAME, unit)?;
    let zone = zone(NAME, place)?;
    let first_day = match unit {
        Some(Unit::Week) => start_of_week(NAME, first_day)?,
        _ => Some(jiff::civil::Weekday::Sunday),
    };
    let (Some(start), Some(end), Some(unit), Some(zone), Some(first_day)) = (start, end, unit, zone, first_day) else {
        return Ok(Evaluated::NULL);
    };
    let (from, to) = (local(start, &zone)?, local(end, &zone)?);
    let days = |date: &ZonedDateTime| day_number(date.date());
    Ok(Evaluated::int64(match unit {
        Unit::Year | Unit::Quarter | Unit::Month => {
            let months = unit.months().unwrap_or(1);
            month_number(&to).div_euclid(months) - month_number(&from).div_euclid(months)
        }
        Unit::Week => {
            // Day 4 since 1970 was a Monday.
            let shift = i64::from(first_day.to_monday_zero_offset()) + 4;
            (days(&to) - shift).div_euclid(7) - (days(&from) - shift).div_euclid(7)
        }
        Unit::Day => days(&to) - days(&from),
        Unit::Hour | Unit::Minute | Unit::Second | Unit::Millisecond => {
            let (length, offset) = (unit.millis().unwrap_or(1), i64::from(from.offset().seconds()) * 1_000);
            (end + offset).div_euclid(length) - (start + offset).div_euclid(length)
        }
    }))
}
