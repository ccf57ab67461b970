//! `$dateToString`, and the format of dates.

use std::fmt::Write;

use super::{
    super::{
        super::{
            Env, Evaluated, Expression, Variables,
            arguments::wrong_type,
            node::{ExpressionNode, Operator},
        },
        named::Parts,
    },
    Local, Zone, part, time, zone,
};
use crate::{Code, Error, Result, held::Held, raw::Value};

#[derive(Debug)]
struct DateToString {
    date: Expression,
    format: Option<Expression>,
    zone: Option<Expression>,
    on_null: Option<Expression>,
}

impl Operator for DateToString {
    fn evaluate<'v>(&'v self, env: &Env<'v>) -> Result<Evaluated<'v>> {
        const NAME: &str = "$dateToString";
        let optional = |part: &'v Option<Expression>| part.as_ref().map(|part| part.evaluate(env)).transpose();
        let date = self.date.evaluate(env)?;
        let (format, place) = (optional(&self.format)?, optional(&self.zone)?);
        // MongoDB's order, which decides whether the result is the value for null dates, null, or an error.
        let given = match &format {
            None => None,
            Some(operand) => match operand.present() {
                None => Some(None),
                Some(value) => {
                    let text = value.as_str();
                    let text = text.ok_or_else(|| wrong_type(NAME, 18533, "a string as 'format'", operand))?;
                    check(text)?;
                    Some(Some(text))
                }
            },
        };
        let zone = match &place {
            None => Some(Zone::UTC),
            Some(operand) => zone(NAME, operand)?,
        };
        if date.is_nullish() {
            return self.on_null.as_ref().map_or(Ok(Evaluated::NULL), |on_null| on_null.evaluate(env));
        }
        let Some(zone) = zone else { return Ok(Evaluated::NULL) };
        let format = match given {
            None if zone == Zone::UTC => "%Y-%m-%dT%H:%M:%S.%LZ",
            None => "%Y-%m-%dT%H:%M:%S.%L",
            Some(None) => return Ok(Evaluated::NULL),
            Some(Some(format)) => format,
        };
        let Some(millis) = time(NAME, &date, 16006)? else { return Ok(Evaluated::NULL) };
        let local = Local::new(zone.local(millis)?);
        // A month's name is up to nine times as long as its specifier's letter; the text is copied once.
        let _held = Held::of(10 * format.len())?;
        Ok(Evaluated::string(&formatted(&local, zone.offset(millis), format)?))
    }

    fn operands(&self) -> Vec<&Expression> {
        [&self.date].into_iter().chain(&self.format).chain(&self.zone).chain(&self.on_null).collect()
    }
}

pub(in super::super) fn parse(name: &str, operand: Value<'_>, variables: &Variables) -> Result<Expression> {
    let mut parts = Parts::parse(name, operand, &["date", "format", "timezone", "onNull"], variables, (18629, 18534))?;
    let date = parts.need(0, name, "date", 18628)?;
    let operator = DateToString { date, format: parts.take(1), zone: parts.take(2), on_null: parts.take(3) };
    let is_constant = operator.operands().into_iter().all(Expression::is_constant);
    if let Some(format) =
        operator.format.as_ref().and_then(|format| format.as_constant()?.as_value()?.as_str().map(str::to_owned))
    {
        check(&format)?;
    }
    if let Some(constant) = operator.zone.as_ref().and_then(Expression::as_constant).filter(|_| !variables.is_lenient())
    {
        zone(name, &constant)?;
    }
    let expression = Expression(ExpressionNode::Operator(std::sync::Arc::new(operator)));
    if is_constant { expression.folded(variables) } else { Ok(expression) }
}

/// Fails with 18535 for an incomplete specifier, 18536 for an unknown one.
fn check(format: &str) -> Result<()> {
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        if character == '%' {
            match characters.next() {
                None => return Err(Error::new(Code(18535), "the format ends with an incomplete specifier")),
                Some(specifier) if SPECIFIERS.contains(specifier) => {}
                Some(specifier) => {
                    return Err(Error::new(Code(18536), format!("unknown specifier in the format: '%{specifier}'")));
                }
            }
        }
    }
    Ok(())
}

const SPECIFIERS: &str = "dGHjLmMSwuUVYzZbB%";

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Returns a local time, of a zone that is `offset` milliseconds ahead of UTC, in a format that was checked.
///
/// # Errors
/// 18537 if the format has the year and this is not from 0 to 9999.
pub(super) fn formatted(local: &Local, offset: i64, format: &str) -> Result<String> {
    let date = local.within();
    let four_digits = |year: i64| match year {
        0..=9_999 => Ok(format!("{year:04}")),
        _ => {
            let message = format!("$dateToString is only defined on the years 0 to 9999, tried to use the year {year}");
            Err(Error::new(Code(18_537), message))
        }
    };
    let mut out = String::new();
    let mut characters = format.chars();
    let month = || MONTHS.get(usize::try_from(date.month() - 1).unwrap_or_default()).copied().unwrap_or_default();
    while let Some(character) = characters.next() {
        if character != '%' {
            out.push(character);
            continue;
        }
        let offset = offset / 60_000;
        // Writing to a string cannot fail.
        let _ = match characters.next() {
            Some('d') => write!(out, "{:02}", date.day()),
            Some('G') => write!(out, "{}", four_digits(local.iso_year())?),
            Some('H') => write!(out, "{:02}", date.hour()),
            Some('j') => write!(out, "{:03}", date.day_of_year()),
            Some('L') => write!(out, "{:03}", date.millisecond()),
            Some('m') => write!(out, "{:02}", date.month()),
            Some('M') => write!(out, "{:02}", date.minute()),
            Some('S') => write!(out, "{:02}", date.second()),
            Some('w') => write!(out, "{}", date.weekday().to_sunday_one_offset()),
            Some('u') => write!(out, "{}", date.weekday().to_monday_one_offset()),
            Some('U') => write!(out, "{:02}", part::week(local)),
            Some('V') => write!(out, "{:02}", date.date().iso_week_date().week()),
            Some('Y') => write!(out, "{}", four_digits(local.year())?),
            Some('z') => {
                let sign = if offset < 0 { '-' } else { '+' };
                write!(out, "{sign}{:02}{:02}", offset.abs() / 60, offset.abs() % 60)
            }
            Some('Z') => write!(out, "{offset}"),
            Some('b') => write!(out, "{}", month().get(..3).unwrap_or_default()),
            Some('B') => write!(out, "{}", month()),
            Some(other) => write!(out, "{other}"),
            None => Ok(()),
        };
    }
    Ok(out)
}
