//! `$dateDiff`: how many boundaries of a unit are between two dates.

use super::{
    super::{
        super::{Evaluated, Expression, Variables},
        named::{Parts, operator},
    },
    Local, out_of_range, time,
    unit::{Unit, is_week_without_start, start_of_week},
    zone,
    zone::DAY,
    zone_part,
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
    operator(name, operands, compute, variables)
}

fn compute<'v>(values: &mut [Evaluated<'v>]) -> Result<Evaluated<'v>> {
    let [start, end, unit, place, first_day] = values else { return Ok(Evaluated::NULL) };
    if [&*start, &*end, &*unit, &*place].into_iter().any(Evaluated::is_nullish)
        || is_week_without_start(unit, first_day)
    {
        return Ok(Evaluated::NULL);
    }
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
    let (from, to) = (zone.local(start)?, zone.local(end)?);
    let days = |local: i64| local.div_euclid(DAY);
    Ok(Evaluated::int64(match unit {
        Unit::Year | Unit::Quarter | Unit::Month => {
            let months = unit.months().unwrap_or(1);
            let number = |local| Local::new(local).month_number().div_euclid(months);
            number(to) - number(from)
        }
        Unit::Week => {
            // Day 4 since 1970 was a Monday.
            let shift = i64::from(first_day.to_monday_zero_offset()) + 4;
            (days(to) - shift).div_euclid(7) - (days(from) - shift).div_euclid(7)
        }
        Unit::Day => days(to) - days(from),
        Unit::Hour | Unit::Minute | Unit::Second | Unit::Millisecond => {
            let (length, offset) = (unit.millis().unwrap_or(1), zone.offset(start));
            let passed = |time: i64| time.checked_add(offset).map(|time| time.div_euclid(length));
            let passed = passed(end).zip(passed(start)).and_then(|(end, start)| end.checked_sub(start));
            passed.ok_or_else(out_of_range)?
        }
    }))
}
