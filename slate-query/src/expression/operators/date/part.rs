//! `$year`, `$month`, `$dayOfMonth` and the other operators that read one part of a date.

use super::{
    super::{
        super::{Evaluated, Expression, Variables},
        named::{Compute, Parts, operator},
    },
    Local, Zone, local, time, zone,
};
use crate::{
    Code, Error, Result,
    raw::{Doc, Value},
};

/// Returns the week of the year, from 0; weeks begin on Sunday.
pub(super) fn week(date: &Local) -> i64 {
    let date = date.within();
    let day = i64::from(date.day_of_year()) - 1;
    (day + 7 - i64::from(date.weekday().to_sunday_zero_offset())) / 7
}

/// Parses an operator whose operand is a date, `[date]`, or `{date: …, timezone: …}`.
fn parse(name: &str, operand: Value<'_>, variables: &Variables, compute: Compute) -> Result<Expression> {
    // An expression is a document, too; named parts, of which there may be none, do not begin with `$`.
    let is_named = |parts: &Doc<'_>| parts.elements().next().is_none_or(|first| !first.name.starts_with(b"$"));
    let (date, zone) = match (operand.as_document().filter(is_named), operand.as_array()) {
        (Some(_), _) => {
            let mut parts = Parts::parse(name, operand, &["date", "timezone"], variables, (40535, 40535))?;
            (parts.need(0, name, "date", 40539)?, parts.take(1))
        }
        (None, Some(array)) => {
            let mut values = array.values();
            match (values.next(), values.next()) {
                (Some(only), None) => (Expression::parse(only, variables)?, None),
                _ => return Err(Error::new(Code(40536), format!("{name} takes one argument"))),
            }
        }
        (None, None) => (Expression::parse(operand, variables)?, None),
    };
    operator(name, [date].into_iter().chain(zone).collect(), compute, variables)
}

fn compute<'v>(name: &str, values: &[Evaluated<'v>], part: fn(&Local) -> Evaluated<'static>) -> Result<Evaluated<'v>> {
    let absent = Evaluated::Missing;
    let (date, place) = (values.first().unwrap_or(&absent), values.get(1));
    let Some(millis) = time(name, date, 16006)? else { return Ok(Evaluated::NULL) };
    let zone = match place {
        None => Some(Zone::UTC),
        Some(operand) if operand.is_nullish() => None,
        Some(operand) => zone(name, operand)?,
    };
    match zone {
        None => Ok(Evaluated::NULL),
        Some(zone) => Ok(part(&local(millis, &zone)?)),
    }
}

macro_rules! parts {
    ($($function:ident $name:literal = $part:expr;)+) => {
        $(pub(in super::super) fn $function(name: &str, operand: Value<'_>, variables: &Variables) -> Result<Expression> {
            parse(name, operand, variables, |values| compute($name, values, $part))
        })+
    };
}

fn int(value: impl Into<i32>) -> Evaluated<'static> {
    Evaluated::int32(value.into())
}

parts! {
    year "$year" = |date| int(i32::try_from(date.year()).unwrap_or_default());
    month "$month" = |date| int(date.within().month());
    day_of_month "$dayOfMonth" = |date| int(date.within().day());
    day_of_year "$dayOfYear" = |date| int(date.within().day_of_year());
    day_of_week "$dayOfWeek" = |date| int(date.within().weekday().to_sunday_one_offset());
    hour "$hour" = |date| int(date.within().hour());
    minute "$minute" = |date| int(date.within().minute());
    second "$second" = |date| int(date.within().second());
    millisecond "$millisecond" = |date| int(date.within().millisecond());
    week_of_year "$week" = |date| int(i32::try_from(week(date)).unwrap_or_default());
    iso_week "$isoWeek" = |date| int(date.within().date().iso_week_date().week());
    iso_week_year "$isoWeekYear" = |date| Evaluated::int64(date.iso_year());
    iso_day_of_week "$isoDayOfWeek" = |date| int(date.within().weekday().to_monday_one_offset());
}
