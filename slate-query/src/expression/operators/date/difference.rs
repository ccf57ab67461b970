//! `$dateDiff`: how many boundaries of a unit are between two dates.

use super::{
    super::{
        super::{Evaluated, Expression, Variables},
        named::Parts,
    },
    Early, Local, check_unit, check_zone, operator, out_of_range, time,
    unit::{self, Unit, check_start_of_week},
    zone,
    zone::DAY,
    zone_part,
};
use crate::{Result, raw::Value};

const NAME: &str = "$dateDiff";

const EARLY: [Early; 3] = [(2, check_unit), (4, check_start_of_week), (3, check_zone)];

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
    operator(name, operands, &EARLY, compute, variables)
}

fn compute<'v>(values: &mut [Evaluated<'v>]) -> Result<Evaluated<'v>> {
    let [start, end, unit, place, first_day] = values else { return Ok(Evaluated::NULL) };
    // MongoDB's order, which decides whether the result is null or an error: the types of the dates come last.
    if start.is_nullish() || end.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let Some(unit) = Unit::of(NAME, unit)? else { return Ok(Evaluated::NULL) };
    let Some(first_day) = unit::first_day(NAME, unit, first_day)? else { return Ok(Evaluated::NULL) };
    let Some(zone) = zone(NAME, place)? else { return Ok(Evaluated::NULL) };
    let (start, end) = (time(NAME, start, 5_166_307)?, time(NAME, end, 5_166_307)?);
    let (Some(start), Some(end)) = (start, end) else { return Ok(Evaluated::NULL) };
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
