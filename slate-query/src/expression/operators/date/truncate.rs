//! `$dateTrunc`: the start of the bin that contains a date. Bins are counted from 2000-01-01, local time.

use super::{
    super::{
        super::{Evaluated, Expression, Variables, arguments::wrong_type},
        named::{Parts, operator},
    },
    Local, out_of_range, time,
    unit::{Unit, is_week_without_start, start_of_week},
    zone,
    zone::{DAY, day_number},
    zone_part,
};
use crate::{Code, Error, Result, number::Number, raw::Value};

const NAME: &str = "$dateTrunc";

pub(in super::super) fn parse(name: &str, operand: Value<'_>, variables: &Variables) -> Result<Expression> {
    let names = ["date", "unit", "binSize", "timezone", "startOfWeek"];
    let mut parts = Parts::parse(name, operand, &names, variables, (5_439_007, 5_439_008))?;
    let mut operands = vec![parts.need(0, name, "date", 5_439_009)?, parts.need(1, name, "unit", 5_439_010)?];
    let bin = parts.or(2, &Evaluated::int32(1));
    operands.extend([bin, zone_part(&mut parts, 3), parts.or(4, &Evaluated::string("sunday"))]);
    operator(name, operands, compute, variables)
}

fn compute<'v>(values: &mut [Evaluated<'v>]) -> Result<Evaluated<'v>> {
    let [start, unit, bin, place, first_day] = values else { return Ok(Evaluated::NULL) };
    if [&*start, &*unit, &*bin, &*place].into_iter().any(Evaluated::is_nullish)
        || is_week_without_start(unit, first_day)
    {
        return Ok(Evaluated::NULL);
    }
    let start = time(NAME, start, 5_166_307)?;
    let bin = match bin.present() {
        None => None,
        Some(value) => {
            let whole = Number::of(value).and_then(Number::to_i64);
            let whole = whole.ok_or_else(|| wrong_type(NAME, 5_439_017, "a whole number as 'binSize'", bin))?;
            if whole <= 0 {
                return Err(Error::new(Code(5_439_018), "the parameter 'binSize' of $dateTrunc is positive"));
            }
            Some(whole)
        }
    };
    let unit = Unit::of(NAME, unit)?;
    let zone = zone(NAME, place)?;
    let first_day = match unit {
        Some(Unit::Week) => start_of_week(NAME, first_day)?,
        _ => Some(jiff::civil::Weekday::Sunday),
    };
    let (Some(start), Some(unit), Some(bin), Some(zone), Some(first_day)) = (start, unit, bin, zone, first_day) else {
        return Ok(Evaluated::NULL);
    };
    let reference = day_number(2_000 * 12, 1)?;
    if let Some(length) = unit.millis() {
        let reference = zone.millis(reference * DAY)?;
        let length = bin.checked_mul(length).ok_or_else(out_of_range)?;
        let passed = start.checked_sub(reference).ok_or_else(out_of_range)?;
        return start.checked_sub(passed.rem_euclid(length)).map(Evaluated::date).ok_or_else(out_of_range);
    }
    let local = zone.local(start)?;
    let whole = |passed: i64, length: i64| passed.div_euclid(length).checked_mul(length).ok_or_else(out_of_range);
    let day = if let Some(months) = unit.months() {
        let length = bin.checked_mul(months).ok_or_else(out_of_range)?;
        let passed = whole(Local::new(local).month_number() - 2_000 * 12, length)?;
        day_number(2_000 * 12 + passed, 1)?
    } else {
        // Weeks are counted from the first day after the reference on which a week starts. The reference, 2000-01-01, was a
        // Saturday.
        let shift = match unit {
            Unit::Week => i64::from(jiff::civil::Weekday::Saturday.until(first_day)),
            _ => 0,
        };
        let length = bin.checked_mul(if unit == Unit::Week { 7 } else { 1 }).ok_or_else(out_of_range)?;
        reference + shift + whole(local.div_euclid(DAY) - reference - shift, length)?
    };
    let midnight = day.checked_mul(DAY).ok_or_else(out_of_range)?;
    Ok(Evaluated::date(zone.millis(midnight)?))
}
