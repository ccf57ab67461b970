//! Operators on dates, in any time zone. The time zones are those of the `jiff` crate, which contains the IANA database,
//! so results do not depend on the system.

pub(super) mod arithmetic;
pub(super) mod difference;
pub(super) mod format;
pub(super) mod from_parts;
pub(super) mod from_string;
pub(super) mod part;
pub(super) mod to_parts;
pub(super) mod truncate;
mod unit;
mod written;
mod zone;

pub(crate) use unit::Unit;

use jiff::tz::TimeZone;

use self::zone::Local;
pub(super) use self::zone::Zone;

use super::{
    super::{Evaluated, Expression, Variables, arguments::wrong_type},
    named::{self, Compute, Parts},
};
use crate::{
    Code, Error, Result,
    raw::{Kind, Value},
};

/// Returns the milliseconds of a value that has a time: a date, a timestamp or an ObjectId. `None` for other types.
pub(super) fn millis(value: Value<'_>) -> Option<i64> {
    match value.kind() {
        Kind::DateTime => value.as_millis(),
        Kind::Timestamp => i64::try_from(value.as_timestamp()? >> 32).ok()?.checked_mul(1_000),
        // The first four bytes of an ObjectId are the seconds since 1970, signed.
        Kind::ObjectId => {
            let id = value.as_object_id()?;
            Some(i64::from(i32::from_be_bytes(*id.first_chunk()?)) * 1_000)
        }
        _ => None,
    }
}

/// Returns the milliseconds of an operand; `None` for null. Fails with `code` for a type without a time.
fn time(name: &str, operand: &Evaluated<'_>, code: i32) -> Result<Option<i64>> {
    let Some(value) = operand.present() else { return Ok(None) };
    millis(value).map(Some).ok_or_else(|| wrong_type(name, code, "a date", operand))
}

/// Returns the time zone that an operand names; `None` for null. Fails with 40517 if it is not a string, with 40485
/// for an unknown time zone.
fn zone(name: &str, operand: &Evaluated<'_>) -> Result<Option<Zone>> {
    let Some(value) = operand.present() else { return Ok(None) };
    let text = value.as_str().ok_or_else(|| wrong_type(name, 40517, "a string as 'timezone'", operand))?;
    let unknown = || Error::new(Code(40485), format!("unknown time zone: '{text}'"));
    // `jiff` looks up names regardless of case; in MongoDB, case matters.
    let named = || TimeZone::get(text).ok().filter(|zone| zone.iana_name() == Some(text)).map(Zone::Named);
    fixed(text).or_else(named).map(Some).ok_or_else(unknown)
}

/// Checks a constant part when the expression is parsed.
type Check = fn(&str, &Evaluated<'_>) -> Result<()>;

/// A part that is checked when the expression is parsed, if it is constant: its position, and its check.
type Early = (usize, Check);

fn check_zone(name: &str, constant: &Evaluated<'_>) -> Result<()> {
    zone(name, constant).map(drop)
}

fn check_unit(name: &str, constant: &Evaluated<'_>) -> Result<()> {
    Unit::of(name, constant).map(drop)
}

/// Creates an operator on dates. As in MongoDB, a constant part in `early` is checked when the expression is parsed, unless all parts are constant:
/// an invalid part is refused, unless the variables are lenient, and a null one makes the result null.
fn operator(
    name: &str,
    parts: Vec<Expression>,
    early: &[Early],
    compute: Compute,
    variables: &Variables,
) -> Result<Expression> {
    if !parts.iter().all(Expression::is_constant) {
        for (place, check) in early {
            let Some(constant) = parts.get(*place).and_then(Expression::as_constant) else { continue };
            if constant.is_nullish() {
                return Ok(Expression::constant(Value::NULL));
            }
            if !variables.is_lenient() {
                check(name, &constant)?;
            }
        }
    }
    named::operator(name, parts, compute, variables)
}

/// Returns the part of an operator that names the time zone; UTC if it is absent.
fn zone_part(parts: &mut Parts, place: usize) -> Expression {
    parts.or(place, &Evaluated::string("UTC"))
}

/// Parses `UTC`, or an offset: `+03`, `-0330`, `+03:30`. `None` for another text.
fn fixed(text: &str) -> Option<Zone> {
    if text == "UTC" {
        return Some(Zone::UTC);
    }
    let (sign, digits) = match text.as_bytes() {
        [b'+', ..] => (1, text.get(1..)?),
        [b'-', ..] => (-1, text.get(1..)?),
        _ => return None,
    };
    let digits: String = match digits.len() {
        2 | 4 => digits.into(),
        5 if digits.as_bytes().get(2) == Some(&b':') => digits.replacen(':', "", 1),
        _ => return None,
    };
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let hours: i64 = digits.get(..2)?.parse().ok()?;
    let minutes: i64 = digits.get(2..).filter(|rest| !rest.is_empty()).map_or(Ok(0), str::parse).ok()?;
    Some(Zone::of_minutes(sign * (hours * 60 + minutes)))
}

/// Returns the local time of a time in UTC.
fn local(millis: i64, zone: &Zone) -> Result<Local> {
    zone.local(millis).map(Local::new)
}

/// Returns a timestamp as MongoDB prints it where a string is expected: `Jan  1 00:00:00:1`.
pub(super) fn timestamp_to_text(timestamp: u64) -> Result<String> {
    let seconds = i64::try_from(timestamp >> 32).unwrap_or_default();
    let date = Local::new(seconds * 1_000);
    let month = format::formatted(&date, 0, "%b")?;
    let (day, time) = (date.within().day(), format::formatted(&date, 0, "%H:%M:%S")?);
    Ok(format!("{month} {day:>2} {time}:{}", timestamp & 0xffff_ffff))
}

fn out_of_range() -> Error {
    Error::new(Code(5_166_406), "the date is out of range")
}
