//! `$dateFromParts`. Parts beyond their usual range carry over: the 13th month is January of the next year.

use super::{
    super::{
        super::{Evaluated, Expression, Variables, arguments::wrong_type},
        named::{Compute, Parts},
    },
    check_zone, operator, out_of_range, zone,
    zone::DAY,
};
use crate::{Code, Error, Result, number::Number, raw::Value};

const NAMES: [&str; 11] = [
    "year",
    "month",
    "day",
    "isoWeekYear",
    "isoWeek",
    "isoDayOfWeek",
    "hour",
    "minute",
    "second",
    "millisecond",
    "timezone",
];

/// The position of the time zone.
const ZONE: usize = 10;

pub(in super::super) fn parse(name: &str, operand: Value<'_>, variables: &Variables) -> Result<Expression> {
    let mut parts = Parts::parse(name, operand, &NAMES, variables, (40519, 40518))?;
    let given: Vec<Option<Expression>> = (0..NAMES.len()).map(|place| parts.take(place)).collect();
    let is_given = |place: usize| given.get(place).is_some_and(Option::is_some);
    match (is_given(0), is_given(3)) {
        (false, false) => {
            return Err(Error::new(Code(40516), "$dateFromParts needs either 'year' or 'isoWeekYear'"));
        }
        (true, _) if is_given(3) || is_given(4) || is_given(5) => {
            return Err(Error::new(Code(40489), "$dateFromParts takes either calendar dates or ISO week dates"));
        }
        (_, true) if is_given(0) || is_given(1) || is_given(2) => {
            return Err(Error::new(Code(40525), "$dateFromParts takes either calendar dates or ISO week dates"));
        }
        _ => {}
    }
    let is_iso = is_given(3);
    // An absent part has its default value; a part whose value is missing makes the result null.
    let absent = |place: usize| if is_given(place) { None } else { default(place) };
    let parts = given.iter().enumerate().map(|(place, part)| match (part, absent(place)) {
        (Some(part), _) => part.clone(),
        (None, Some(default)) => Expression::constant(Evaluated::int32(default).or_null()),
        (None, None) => Expression::constant(Evaluated::string("UTC").or_null()),
    });
    let parts: Vec<_> = parts.collect();
    let compute: Compute = if is_iso { |values| compute(values, true) } else { |values| compute(values, false) };
    operator(name, parts, &[(ZONE, check_zone)], compute, variables)
}

fn default(place: usize) -> Option<i32> {
    match place {
        0..=5 => Some(1),
        6..=9 => Some(0),
        _ => None,
    }
}

/// Returns parts as numbers, checked in order; `None` at the first one that is null.
fn numbers<const N: usize>(parts: [&mut Evaluated<'_>; N], names: &[&str]) -> Result<Option<[i64; N]>> {
    let mut numbers = [0_i64; N];
    for ((number, part), name) in numbers.iter_mut().zip(parts).zip(names) {
        let Some(value) = part.present() else { return Ok(None) };
        let whole = Number::of(value).and_then(Number::to_i64);
        let wrong = || wrong_type("$dateFromParts", 40515, &format!("a whole number as '{name}'"), part);
        *number = whole.ok_or_else(wrong)?;
        if !matches!(*name, "year" | "isoWeekYear" | "second" | "millisecond") && !(-32_768..=32_767).contains(number) {
            return Err(Error::new(Code(31034), format!("'{name}' is out of range")));
        }
    }
    Ok(Some(numbers))
}

fn compute<'v>(values: &mut [Evaluated<'v>], is_iso: bool) -> Result<Evaluated<'v>> {
    let [date @ .., hour, minute, second, millisecond, place] = values else { return Ok(Evaluated::NULL) };
    let (date_names, time_names) = NAMES.split_at(6);
    // MongoDB's order, which decides whether the result is null or an error: the time, the time zone, the date.
    let Some([hour, minute, second, millisecond]) = numbers([hour, minute, second, millisecond], time_names)? else {
        return Ok(Evaluated::NULL);
    };
    let Some(place) = zone("$dateFromParts", place)? else { return Ok(Evaluated::NULL) };
    let [year, month, day, iso_year, iso_week, iso_day] = date else { return Ok(Evaluated::NULL) };
    let Some([year, month, day, iso_year, iso_week, iso_day]) =
        numbers([year, month, day, iso_year, iso_week, iso_day], date_names)?
    else {
        return Ok(Evaluated::NULL);
    };
    let first = if is_iso { iso_year } else { year };
    let name = if is_iso { "isoWeekYear" } else { "year" };
    if !(1..=9_999).contains(&first) {
        let code = if is_iso { 31095 } else { 40523 };
        return Err(Error::new(Code(code), format!("'{name}' is from 1 to 9999, not {first}")));
    }
    let day = if is_iso {
        // The first ISO week contains January 4.
        let fourth = zone::day_number(first * 12, 4)?;
        // 1970-01-01 was a Thursday.
        fourth - (fourth + 3).rem_euclid(7) + (iso_week - 1) * 7 + iso_day - 1
    } else {
        zone::day_number(first * 12 + month - 1, 1)? + day - 1
    };
    let seconds = ((hour * 60 + minute) * 60).checked_add(second);
    let time = seconds.and_then(|seconds| seconds.checked_mul(1_000)).and_then(|time| time.checked_add(millisecond));
    let local = day.checked_mul(DAY).zip(time).and_then(|(day, time)| day.checked_add(time));
    let local = local.ok_or_else(out_of_range)?;
    Ok(Evaluated::date(place.millis(local)?))
}
