//! `$dateTrunc`: the start of the bin that contains a date. Bins are counted from 2000-01-01, local time.

use jiff::{
    Span,
    civil::{Date, Time, date as day},
};

use super::{
    super::{
        super::{Evaluated, Expression, Variables, arguments::wrong_type},
        named::{Parts, operator},
    },
    date,
    difference::{day_number, month_number},
    local, out_of_range, time,
    unit::{Unit, start_of_week},
    zone, zone_part,
};
use crate::{Code, Error, Result, number::Number, raw::Value};

const NAME: &str = "$dateTrunc";

pub(in super::super) fn parse(name: &str, operand: Value<'_>, variables: &Variables) -> Result<Expression> {
    let names = ["date", "unit", "binSize", "timezone", "startOfWeek"];
    let mut parts = Parts::parse(name, operand, &names, variables, (5_439_007, 5_439_008))?;
    let mut operands = vec![parts.need(0, name, "date", 5_439_009)?, parts.need(1, name, "unit", 5_439_010)?];
    let bin = parts.or(2, &Evaluated::int32(1));
    operands.extend([bin, zone_part(&mut parts, 3), parts.or(4, &Evaluated::string("sunday"))]);
    operator(name, operands, compute)
}

fn compute<'v>(values: &mut [Evaluated<'v>]) -> Result<Evaluated<'v>> {
    let [start, unit, bin, place, first_day] = values else { return Ok(Evaluated::NULL) };
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
    let at_midnight =
        |day: Date| day.to_datetime(Time::midnight()).to_zoned_datetime(zone.clone()).map_err(|_| out_of_range());
    let reference = day(2000, 1, 1);
    if let Some(length) = unit.millis() {
        let reference = at_midnight(reference)?.timestamp().as_millisecond();
        let length = bin.checked_mul(length).ok_or_else(out_of_range)?;
        return Ok(Evaluated::date(start - (start - reference).rem_euclid(length)));
    }
    let local = local(start, &zone)?;
    let truncated = if let Some(months) = unit.months() {
        let length = bin.checked_mul(months).ok_or_else(out_of_range)?;
        let passed =
            (month_number(&local) - 2000 * 12).div_euclid(length).checked_mul(length).ok_or_else(out_of_range)?;
        Span::new().try_months(passed).and_then(|span| reference.checked_add(span))
    } else {
        // The first of the days on which a week starts.
        let shift = if unit == Unit::Week { i64::from(reference.weekday().until(first_day)) } else { 0 };
        let length = bin.checked_mul(if unit == Unit::Week { 7 } else { 1 }).ok_or_else(out_of_range)?;
        let passed = day_number(local.date()) - day_number(reference) - shift;
        let passed = passed.div_euclid(length).checked_mul(length).ok_or_else(out_of_range)? + shift;
        Span::new().try_days(passed).and_then(|span| reference.checked_add(span))
    };
    Ok(date(&at_midnight(truncated.map_err(|_| out_of_range())?)?))
}
