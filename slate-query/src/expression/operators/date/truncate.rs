//! `$dateTrunc`: the start of the bin that contains a date. Bins are counted from 2000-01-01, local time.

use super::{
    super::{
        super::{Evaluated, Expression, Variables, arguments::wrong_type},
        named::Parts,
    },
    Early, Local, check_unit, check_zone, operator, out_of_range, time,
    unit::{self, Unit, check_start_of_week},
    zone,
    zone::{DAY, day_number},
    zone_part,
};
use crate::{Code, Error, Result, number::Number, raw::Value};

const NAME: &str = "$dateTrunc";

const EARLY: [Early; 4] =
    [(1, check_unit), (4, check_start_of_week), (2, |_, constant| bin_size(constant).map(drop)), (3, check_zone)];

/// The largest bin in days or longer units, as in MongoDB.
const MOST_DAYS: i64 = 100_000_000_000;

pub(in super::super) fn parse(name: &str, operand: Value<'_>, variables: &Variables) -> Result<Expression> {
    let names = ["date", "unit", "binSize", "timezone", "startOfWeek"];
    let mut parts = Parts::parse(name, operand, &names, variables, (5_439_007, 5_439_008))?;
    let mut operands = vec![parts.need(0, name, "date", 5_439_009)?, parts.need(1, name, "unit", 5_439_010)?];
    let bin = parts.or(2, &Evaluated::int32(1));
    operands.extend([bin, zone_part(&mut parts, 3), parts.or(4, &Evaluated::string("sunday"))]);
    operator(name, operands, &EARLY, compute, variables)
}

/// Returns the number of units of a bin; `None` for null.
fn bin_size(operand: &Evaluated<'_>) -> Result<Option<i64>> {
    let Some(value) = operand.present() else { return Ok(None) };
    let whole = Number::of(value).and_then(Number::to_i64);
    let whole = whole.ok_or_else(|| wrong_type(NAME, 5_439_017, "a whole number as 'binSize'", operand))?;
    if whole <= 0 {
        return Err(Error::new(Code(5_439_018), "the parameter 'binSize' of $dateTrunc is positive"));
    }
    Ok(Some(whole))
}

fn compute<'v>(values: &mut [Evaluated<'v>]) -> Result<Evaluated<'v>> {
    let [start, unit, bin, place, first_day] = values else { return Ok(Evaluated::NULL) };
    // MongoDB's order, which decides whether the result is null or an error: the type of the date comes last.
    if start.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let Some(bin) = bin_size(bin)? else { return Ok(Evaluated::NULL) };
    let Some(unit) = Unit::of(NAME, unit)? else { return Ok(Evaluated::NULL) };
    let Some(first_day) = unit::first_day(NAME, unit, first_day)? else { return Ok(Evaluated::NULL) };
    let Some(zone) = zone(NAME, place)? else { return Ok(Evaluated::NULL) };
    let Some(start) = time(NAME, start, 5_166_307)? else { return Ok(Evaluated::NULL) };
    let reference = day_number(2_000 * 12, 1)?;
    if let Some(length) = unit.millis() {
        let reference = zone.millis(reference * DAY)?;
        let overflow = || Error::new(Code(5_439_002), "'binSize' of $dateTrunc is too large for its unit");
        let length = bin.checked_mul(length).ok_or_else(overflow)?;
        let passed = start.checked_sub(reference).ok_or_else(out_of_range)?;
        return start.checked_sub(passed.rem_euclid(length)).map(Evaluated::date).ok_or_else(out_of_range);
    }
    if bin > MOST_DAYS {
        return Err(Error::new(
            Code(5_439_006),
            format!("'binSize' of $dateTrunc is at most {MOST_DAYS} for this unit"),
        ));
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
