//! Conversions between types: `$convert`, `$toInt` and its relatives, `$type`, `$isNumber`.

use bson::oid::ObjectId;

use super::{
    super::{
        Env, Evaluated, Expression, Variables,
        arguments::Arguments,
        node::{Node, Operator},
        parse::operands,
    },
    date,
    named::Parts,
};
use crate::{
    Code, Error, Result,
    number::{Decimal, Number},
    raw::{Kind, Value},
};

/// `ConversionFailure`.
const FAILURE: Code = Code(241);

fn failure(message: impl Into<Box<str>>) -> Error {
    Error::new(FAILURE, message)
}

pub(super) fn type_name<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    Ok(Evaluated::string(arguments.get(0).as_value().map_or("missing", |value| value.kind().alias())))
}

pub(super) fn is_number<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    Ok(arguments.get(0).as_value().and_then(Number::of).is_some().into())
}

/// A value as text, as `$toString` gives it.
pub(super) fn to_text(value: Value<'_>) -> Result<String> {
    Ok(match value.kind() {
        Kind::String | Kind::Symbol => String::from_utf8_lossy(value.text().unwrap_or_default()).into_owned(),
        Kind::Boolean => value.as_bool().unwrap_or_default().to_string(),
        Kind::Int32 => value.as_i32().unwrap_or_default().to_string(),
        Kind::Int64 => value.as_i64().unwrap_or_default().to_string(),
        Kind::Double => double_to_text(value.as_f64().unwrap_or_default()),
        Kind::Decimal128 => bson::Decimal128::from_bytes(value.as_decimal().unwrap_or_default()).to_string(),
        Kind::ObjectId => ObjectId::from_bytes(value.as_object_id().unwrap_or_default()).to_hex(),
        Kind::DateTime => {
            let date = bson::DateTime::from_millis(value.as_millis().unwrap_or_default());
            date_to_text(date).ok_or_else(|| failure("$toString: the date is out of range"))?
        }
        _ => return Err(unsupported(value, Target::String)),
    })
}

/// ISO 8601 with milliseconds.
fn date_to_text(date: bson::DateTime) -> Option<String> {
    let text = date.try_to_rfc3339_string().ok()?;
    let (seconds, fraction) = match text.strip_suffix('Z')?.split_once('.') {
        Some((seconds, fraction)) => (seconds.to_owned(), fraction.to_owned()),
        None => (text.strip_suffix('Z')?.to_owned(), String::new()),
    };
    Some(format!("{seconds}.{fraction:0<3}Z"))
}

fn double_to_text(double: f64) -> String {
    if !double.is_finite() {
        return if double.is_nan() {
            "NaN"
        } else if double > 0.0 {
            "Infinity"
        } else {
            "-Infinity"
        }
        .into();
    }
    let magnitude = double.abs();
    if magnitude != 0.0 && !(1e-4..1e16).contains(&magnitude) {
        return scientific(&format!("{double:e}"));
    }
    if double == 0.0 && double.is_sign_negative() { "-0".into() } else { double.to_string() }
}

/// An exponent with a sign and at least two digits, as C prints it.
fn scientific(text: &str) -> String {
    match text.split_once('e') {
        Some((digits, power)) if !power.starts_with('-') => format!("{digits}e+{power:0>2}"),
        Some((digits, power)) => format!("{digits}e-{:0>2}", power.trim_start_matches('-')),
        None => text.into(),
    }
}

/// Six significant digits, as C prints `%g`.
pub(super) fn six_digits(double: f64) -> String {
    if !double.is_finite() {
        return if double.is_nan() {
            "nan"
        } else if double > 0.0 {
            "inf"
        } else {
            "-inf"
        }
        .into();
    }
    let rounded = format!("{double:.5e}");
    let (digits, power) = rounded.split_once('e').unwrap_or((&rounded, "0"));
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    match power.parse::<i32>() {
        Ok(power @ -4..=5) => {
            let places = usize::try_from(5 - power).unwrap_or_default();
            trimmed(&format!("{double:.places$}"))
        }
        _ => scientific(&format!("{}e{power}", trimmed(digits))),
    }
}

/// The types that values are converted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Double,
    String,
    ObjectId,
    Bool,
    Date,
    Int,
    Long,
    Decimal,
    /// To which Slate converts nothing.
    Binary,
    /// Another type, to which no value is converted.
    Other,
}

impl Target {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "double" => Self::Double,
            "string" => Self::String,
            "objectId" => Self::ObjectId,
            "bool" => Self::Bool,
            "date" => Self::Date,
            "int" => Self::Int,
            "long" => Self::Long,
            "decimal" => Self::Decimal,
            "binData" => Self::Binary,
            _ => return None,
        })
    }

    fn of(value: Value<'_>) -> Result<Self> {
        if let Some(name) = value.as_str() {
            let is_type = || (0..=u8::MAX).filter_map(Kind::from_byte).any(|kind| kind.alias() == name);
            return Self::named(name)
                .or_else(|| is_type().then_some(Self::Other))
                .ok_or_else(|| Error::new(Code::BAD_VALUE, format!("unknown type name: {name}")));
        }
        let number = Number::of(value).and_then(Number::to_i64);
        Ok(match number {
            Some(1) => Self::Double,
            Some(2) => Self::String,
            Some(7) => Self::ObjectId,
            Some(8) => Self::Bool,
            Some(9) => Self::Date,
            Some(16) => Self::Int,
            Some(18) => Self::Long,
            Some(19) => Self::Decimal,
            Some(5) => Self::Binary,
            Some(-1 | 3 | 4 | 6 | 10..=15 | 17 | 127) => Self::Other,
            Some(_) | None if Number::of(value).is_none() => {
                return Err(Error::new(
                    Code::FAILED_TO_PARSE,
                    "the parameter 'to' of $convert is a string or a number",
                ));
            }
            Some(number) => return Err(Error::new(Code::FAILED_TO_PARSE, format!("unknown type number: {number}"))),
            None => return Err(Error::new(Code::FAILED_TO_PARSE, "a type number is whole")),
        })
    }
}

fn unsupported(value: Value<'_>, target: Target) -> Error {
    let is_binary = value.kind() == Kind::Binary;
    if is_binary && matches!(target, Target::Int | Target::Long | Target::Double | Target::String)
        || target == Target::Binary
    {
        return Error::unsupported("the conversion from or to binData");
    }
    let target = format!("{target:?}").to_lowercase();
    failure(format!("unsupported conversion from {} to {target}", value.kind().alias()))
}

fn out_of_range() -> Error {
    failure("the value is out of the range of the target type")
}

fn convert<'v>(value: Value<'_>, target: Target) -> Result<Evaluated<'v>> {
    Ok(match target {
        Target::Binary | Target::Other => return Err(unsupported(value, target)),
        Target::String => Evaluated::string(&to_text(value)?),
        Target::Bool => to_bool(value).into(),
        Target::Double => Evaluated::double(to_double(value)?),
        Target::Int => Evaluated::int32(i32::try_from(to_whole(value, target)?).map_err(|_| out_of_range())?),
        Target::Long => Evaluated::int64(to_whole(value, target)?),
        Target::Decimal => Number::Decimal(to_decimal(value)?).into(),
        Target::Date => Evaluated::date(to_date(value)?),
        Target::ObjectId => match value.kind() {
            Kind::ObjectId => Evaluated::Owned(value.to_owned()),
            Kind::String => {
                let id = value.as_str().and_then(|text| ObjectId::parse_str(text).ok());
                let id = id.ok_or_else(|| failure("an ObjectId consists of 24 hexadecimal digits"))?;
                Evaluated::of(Kind::ObjectId, &id.bytes())
            }
            _ => return Err(unsupported(value, target)),
        },
    })
}

fn to_bool(value: Value<'_>) -> bool {
    Evaluated::Borrowed(value).is_true()
}

/// The text of a number, without the forms that only Rust accepts.
fn number_text(text: &str) -> Result<&str> {
    let is_number = !text.is_empty() && !text.starts_with('+') || text.len() > 1 && text.starts_with('+');
    if is_number && !text.contains(char::is_whitespace) {
        return Ok(text);
    }
    Err(failure(format!("failed to parse number '{text}'")))
}

fn to_double(value: Value<'_>) -> Result<f64> {
    match value.kind() {
        Kind::Boolean => Ok(f64::from(u8::from(value.as_bool() == Some(true)))),
        Kind::DateTime => Ok(Number::Int64(value.as_millis().unwrap_or_default()).to_f64()),
        Kind::String => {
            let text = number_text(value.as_str().unwrap_or_default())?;
            let double = text.parse::<f64>().map_err(|_| failure(format!("failed to parse number '{text}'")))?;
            if double.is_infinite() && text.contains(|c: char| c.is_ascii_digit()) {
                return Err(out_of_range());
            }
            Ok(double)
        }
        _ => {
            let number = Number::of(value).ok_or_else(|| unsupported(value, Target::Double))?;
            let double = number.to_f64();
            if double.is_infinite() && number.is_finite() { Err(out_of_range()) } else { Ok(double) }
        }
    }
}

fn to_whole(value: Value<'_>, target: Target) -> Result<i64> {
    match value.kind() {
        Kind::Boolean => Ok(i64::from(value.as_bool() == Some(true))),
        Kind::DateTime if target == Target::Long => Ok(value.as_millis().unwrap_or_default()),
        Kind::String => {
            let text = number_text(value.as_str().unwrap_or_default())?;
            text.parse().map_err(|_| failure(format!("failed to parse number '{text}'")))
        }
        _ => {
            let number = Number::of(value).ok_or_else(|| unsupported(value, target))?;
            number.to_i64_truncating().ok_or_else(out_of_range)
        }
    }
}

fn to_decimal(value: Value<'_>) -> Result<Decimal> {
    match value.kind() {
        Kind::Boolean => Ok(Decimal::from(i64::from(value.as_bool() == Some(true)))),
        Kind::DateTime => Ok(Decimal::from(value.as_millis().unwrap_or_default())),
        Kind::String => {
            let text = number_text(value.as_str().unwrap_or_default())?;
            text.parse().map_err(|_| failure(format!("failed to parse number '{text}'")))
        }
        _ => Ok(Number::of(value).ok_or_else(|| unsupported(value, Target::Decimal))?.to_decimal()),
    }
}

fn to_date(value: Value<'_>) -> Result<i64> {
    match value.kind() {
        Kind::DateTime => Ok(value.as_millis().unwrap_or_default()),
        Kind::Int64 | Kind::Double | Kind::Decimal128 => {
            Number::of(value).and_then(Number::to_i64_truncating).ok_or_else(out_of_range)
        }
        Kind::ObjectId | Kind::Timestamp => date::millis(value).ok_or_else(out_of_range),
        Kind::String => date::from_string::without_format(value.as_str().unwrap_or_default(), None),
        _ => Err(unsupported(value, Target::Date)),
    }
}

/// `$convert` and the operators that convert to one type.
#[derive(Debug)]
struct Convert {
    input: Expression,
    to: To,
    on_error: Option<Expression>,
    on_null: Option<Expression>,
}

#[derive(Debug)]
enum To {
    Fixed(Target),
    Computed(Expression),
}

impl Operator for Convert {
    fn evaluate<'v>(&'v self, env: &Env<'v>) -> Result<Evaluated<'v>> {
        let input = self.input.evaluate(env)?;
        let target = match &self.to {
            To::Fixed(target) => Some(*target),
            To::Computed(to) => {
                let to = to.evaluate(env)?;
                match to.present() {
                    None => None,
                    Some(value) => Some(match value.as_document().and_then(|document| document.get("type")) {
                        Some(value) => Target::of(value)?,
                        None => Target::of(value)?,
                    }),
                }
            }
        };
        let Some(value) = input.present() else {
            return self.on_null.as_ref().map_or(Ok(Evaluated::NULL), |on_null| on_null.evaluate(env));
        };
        let Some(target) = target else { return Ok(Evaluated::NULL) };
        match (convert(value, target), &self.on_error) {
            (Err(error), Some(on_error)) if error.code() == FAILURE => on_error.evaluate(env),
            (converted, _) => converted,
        }
    }

    fn operands(&self) -> Vec<&Expression> {
        let to = match &self.to {
            To::Fixed(_) => None,
            To::Computed(to) => Some(to),
        };
        [&self.input].into_iter().chain(to).chain(&self.on_error).chain(&self.on_null).collect()
    }
}

fn node(convert: Convert) -> Result<Expression> {
    let is_constant = convert.operands().into_iter().all(Expression::is_constant);
    let expression = Expression(Node::Operator(std::sync::Arc::new(convert)));
    Ok(if is_constant { expression.folded() } else { expression })
}

pub(super) fn to_type(name: &str, operand: Value<'_>, variables: &Variables) -> Result<Expression> {
    let target = match name {
        "$toBool" => Target::Bool,
        "$toDate" => Target::Date,
        "$toDecimal" => Target::Decimal,
        "$toDouble" => Target::Double,
        "$toInt" => Target::Int,
        "$toLong" => Target::Long,
        "$toObjectId" => Target::ObjectId,
        _ => Target::String,
    };
    let [input] = <[Expression; 1]>::try_from(operands(operand, variables)?).map_err(|operands| {
        let message = format!("expression {name} takes exactly 1 argument, {} were given", operands.len());
        Error::new(Code(50723), message)
    })?;
    node(Convert { input, to: To::Fixed(target), on_error: None, on_null: None })
}

pub(super) fn convert_to(name: &str, operand: Value<'_>, variables: &Variables) -> Result<Expression> {
    let names = ["input", "to", "onError", "onNull", "format", "byteOrder"];
    let mut parts = Parts::parse(name, operand, &names, variables, (9, 9))?;
    let input = parts.need(0, name, "input", 9)?;
    let to = parts.need(1, name, "to", 9)?;
    if parts.take(4).is_some() {
        return Err(Error::unsupported("the parameter 'format' of $convert"));
    }
    if parts.take(5).is_some() {
        return Err(Error::unsupported("the parameter 'byteOrder' of $convert"));
    }
    node(Convert { input, to: To::Computed(to), on_error: parts.take(2), on_null: parts.take(3) })
}
