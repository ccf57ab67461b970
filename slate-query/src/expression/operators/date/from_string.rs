//! `$dateFromString`.

use jiff::{
    Timestamp,
    civil::{Date, DateTime},
    tz::TimeZone,
};

use super::{
    super::{
        super::{
            Env, Evaluated, Expression, Variables,
            arguments::wrong_type,
            node::{ExpressionNode, Operator},
        },
        named::Parts,
    },
    Zone,
    written::{self, Cursor},
    zone,
};
use crate::{Code, Error, Result, raw::Value};

const NAME: &str = "$dateFromString";

#[derive(Debug)]
struct DateFromString {
    text: Expression,
    format: Option<Expression>,
    zone: Option<Expression>,
    on_error: Option<Expression>,
    on_null: Option<Expression>,
}

pub(in super::super) fn parse(name: &str, operand: Value<'_>, variables: &Variables) -> Result<Expression> {
    let names = ["dateString", "format", "timezone", "onError", "onNull"];
    let mut parts = Parts::parse(name, operand, &names, variables, (40540, 40541))?;
    let operator = DateFromString {
        text: parts.need(0, name, "dateString", 40542)?,
        format: parts.take(1),
        zone: parts.take(2),
        on_error: parts.take(3),
        on_null: parts.take(4),
    };
    if let Some(constant) = operator.zone.as_ref().and_then(Expression::as_constant).filter(|_| !variables.is_lenient())
    {
        zone(name, &constant)?;
    }
    let is_constant = operator.operands().into_iter().all(Expression::is_constant);
    let expression = Expression(ExpressionNode::Operator(std::sync::Arc::new(operator)));
    if is_constant { expression.folded(variables) } else { Ok(expression) }
}

impl Operator for DateFromString {
    fn evaluate<'v>(&'v self, env: &Env<'v>) -> Result<Evaluated<'v>> {
        let text = self.text.evaluate(env)?;
        let format = self.format.as_ref().map(|format| format.evaluate(env)).transpose()?;
        let format = match &format {
            None => Some(None),
            Some(operand) => match operand.present() {
                None => None,
                Some(value) => {
                    Some(Some(value.as_str().ok_or_else(|| wrong_type(NAME, 40684, "a string as 'format'", operand))?))
                }
            },
        };
        if let Some(Some(format)) = format {
            check(format)?;
        }
        let place = match &self.zone {
            None => Some(Zone::UTC),
            Some(place) => zone(NAME, &place.evaluate(env)?)?,
        };
        let Some(value) = text.present() else {
            return self.on_null.as_ref().map_or(Ok(Evaluated::NULL), |on_null| on_null.evaluate(env));
        };
        let read = match (value.as_str(), place, format) {
            (None, ..) => Err(Error::new(
                Code::CONVERSION_FAILURE,
                format!("{NAME} takes a string, not {}", value.kind().alias()),
            )),
            (Some(_), None, _) | (Some(_), _, None) => return Ok(Evaluated::NULL),
            (Some(text), Some(place), Some(Some(format))) => with_format(text, format, &place),
            (Some(text), Some(place), Some(None)) => without_format(text, &place),
        };
        match (read, &self.on_error) {
            (Ok(millis), _) => Ok(Evaluated::date(millis)),
            (Err(_), Some(on_error)) => on_error.evaluate(env),
            (Err(error), None) => Err(error),
        }
    }

    fn operands(&self) -> Vec<&Expression> {
        [&self.text]
            .into_iter()
            .chain(&self.format)
            .chain(&self.zone)
            .chain(&self.on_error)
            .chain(&self.on_null)
            .collect()
    }
}

fn failure(text: &str) -> Error {
    Error::new(Code::CONVERSION_FAILURE, format!("error parsing date string '{text}'"))
}

/// Fails with `ConversionFailure` unless the given time zone is UTC, which counts as none, as in MongoDB. Called if
/// the text has a time zone.
fn check_only_zone(given: &Zone) -> Result<()> {
    if *given == Zone::UTC {
        return Ok(());
    }
    Err(Error::new(Code::CONVERSION_FAILURE, "the date string has a time zone, so 'timezone' must be absent or UTC"))
}

fn at(local: DateTime, zone: &Zone, text: &str) -> Result<i64> {
    let utc = local.to_zoned_datetime(TimeZone::UTC).map_err(|_| failure(text))?;
    zone.millis(utc.timestamp().as_millisecond()).map_err(|_| failure(text))
}

/// Reads a date in ISO 8601, in which spaces may stand in place of `T`, around the date, and before the time zone. Reads other
/// forms with [`written`].
pub(in super::super) fn without_format(text: &str, zone: &Zone) -> Result<i64> {
    let words: Vec<&str> =
        text.split(|c: char| c.is_whitespace() || c == '\0').filter(|word| !word.is_empty()).collect();
    let joined = match words.as_slice() {
        [date, time, zone] if zone.starts_with(['+', '-', 'Z']) => format!("{date}T{time}{zone}"),
        [date_and_time, zone] if date_and_time.contains('T') && zone.starts_with(['+', '-', 'Z']) => words.concat(),
        [date, time] if !time.starts_with(['+', '-', 'Z']) => format!("{date}T{time}"),
        _ => words.join(" "),
    };
    // A year before 0 has six digits in ISO 8601, four in MongoDB.
    let early = joined.strip_prefix('-').filter(|rest| rest.get(4..5) == Some("-")).map(|rest| format!("-00{rest}"));
    let text = early.as_deref().unwrap_or(&joined);
    if let Ok(time) = text.parse::<Timestamp>() {
        return check_only_zone(zone).map(|()| time.as_millisecond());
    }
    // The last days of the year 9999 are beyond the range of `Timestamp`.
    if let Ok(date) = bson::DateTime::parse_rfc3339_str(text) {
        return check_only_zone(zone).map(|()| date.timestamp_millis());
    }
    let is_date = text.get(4..5) == Some("-") && text.get(7..8) == Some("-");
    if let Some(local) = text.parse::<DateTime>().ok().filter(|_| is_date) {
        return at(local, zone, text);
    }
    let found = written::read(words.join(" ").as_str()).ok_or_else(|| failure(text))?;
    let own_zone = found.zone.map(Zone::of_minutes);
    if own_zone.is_some() {
        check_only_zone(zone)?;
    }
    at(found.date.to_datetime(found.time), own_zone.as_ref().unwrap_or(zone), text)
}

/// Fails with 18535 for an incomplete specifier, 18536 for an unknown one.
fn check(format: &str) -> Result<()> {
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        if character == '%' {
            match characters.next() {
                None => return Err(Error::new(Code(18535), "the format ends with an incomplete specifier")),
                Some(specifier) if "YmdHMSLGVujzZbB%".contains(specifier) => {}
                Some(specifier) => {
                    return Err(Error::new(Code(18536), format!("unknown specifier in the format: '%{specifier}'")));
                }
            }
        }
    }
    Ok(())
}

/// Reads a number of at most `most` digits; `None` without any digit.
fn digits(rest: &mut &str, most: usize) -> Option<i64> {
    let length = rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
    let (number, left) = rest.split_at_checked(length)?;
    *rest = left;
    number.parse().ok()
}

pub(super) const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// Reads the name of a month, or with `is_short` its first three letters. Returns the month's number, from 1.
fn month(rest: &mut &str, is_short: bool) -> Option<i64> {
    let place = MONTHS.iter().position(|month| {
        let name = if is_short { month.get(..3).unwrap_or_default() } else { month };
        rest.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
    })?;
    let length = if is_short { 3 } else { MONTHS.get(place)?.len() };
    *rest = rest.get(length..)?;
    i64::try_from(place).ok().map(|place| place + 1)
}

fn with_format(text: &str, format: &str, zone: &Zone) -> Result<i64> {
    let wrong = || failure(text);
    let mut rest = text;
    let (mut numbers, mut own_zone) = (std::collections::BTreeMap::new(), None);
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            rest = rest.strip_prefix(character).ok_or_else(wrong)?;
            continue;
        }
        let specifier = characters.next().unwrap_or('%');
        let number = match specifier {
            'Y' | 'G' => digits(&mut rest, 4),
            'm' | 'd' | 'H' | 'M' | 'S' | 'V' => digits(&mut rest, 2),
            'j' => digits(&mut rest, 3),
            // A fraction of a second.
            'L' => {
                let before = rest.len();
                digits(&mut rest, 3).map(|number| number * [1, 100, 10, 1].get(before - rest.len()).unwrap_or(&1))
            }
            'u' => digits(&mut rest, 1),
            'b' | 'B' => month(&mut rest, specifier == 'b'),
            'z' => {
                let mut cursor = Cursor::new(rest);
                let minutes = written::zone(&mut cursor).ok_or_else(wrong)?;
                own_zone = Some(Zone::of_minutes(minutes));
                rest = cursor.rest();
                continue;
            }
            'Z' => {
                let sign = match rest.chars().next() {
                    Some('+') => 1,
                    Some('-') => -1,
                    _ => return Err(wrong()),
                };
                rest = rest.get(1..).unwrap_or_default();
                let minutes = digits(&mut rest, 3).ok_or_else(wrong)? * sign;
                own_zone = Some(Zone::of_minutes(minutes));
                continue;
            }
            other => {
                rest = rest.strip_prefix(other).ok_or_else(wrong)?;
                continue;
            }
        };
        let key = if matches!(specifier, 'b' | 'B') { 'm' } else { specifier };
        numbers.insert(key, number.ok_or_else(wrong)?);
    }
    if !rest.is_empty() {
        return Err(wrong());
    }
    if own_zone.is_some() {
        check_only_zone(zone)?;
    }
    let number = |key: char, default: i64| numbers.get(&key).copied().unwrap_or(default);
    let small = |key: char, default: i64| i8::try_from(number(key, default)).map_err(|_| wrong());
    let year =
        |key: char| -> Result<i16> { numbers.get(&key).and_then(|year| i16::try_from(*year).ok()).ok_or_else(wrong) };
    let date = if numbers.contains_key(&'G') {
        if numbers.keys().any(|key| matches!(key, 'm' | 'd' | 'j' | 'Y')) {
            return Err(wrong());
        }
        Ok(written::of_week(year('G')?.into(), number('V', 1), number('u', 1)).ok_or_else(wrong)?)
    } else if numbers.keys().any(|key| matches!(key, 'V' | 'u')) {
        return Err(wrong());
    } else if let Some(day) = numbers.get(&'j') {
        let start = Date::new(year('Y')?, 1, 1).map_err(|_| wrong())?;
        jiff::Span::new().try_days(day - 1).and_then(|span| start.checked_add(span))
    } else {
        if !numbers.contains_key(&'m') || !numbers.contains_key(&'d') {
            return Err(wrong());
        }
        Date::new(year('Y')?, small('m', 1)?, small('d', 1)?)
    };
    let nanoseconds = i32::try_from(number('L', 0) * 1_000_000).map_err(|_| wrong())?;
    let time = jiff::civil::Time::new(small('H', 0)?, small('M', 0)?, small('S', 0)?, nanoseconds);
    let (date, time) = (date.map_err(|_| wrong())?, time.map_err(|_| wrong())?);
    at(date.to_datetime(time), own_zone.as_ref().unwrap_or(zone), text)
}
