//! Conversions between types: `$convert`, `$toInt` and its relatives, `$type`, `$isNumber`.

mod binary;
mod hexadecimal;
mod text;

use bson::oid::ObjectId;

pub(super) use self::binary::generic as generic_binary;
use self::binary::{ByteOrder, Format};
pub(super) use self::text::{six_digits, to_text};
use super::{
    super::{
        Env, Evaluated, Expression, Variables,
        arguments::Arguments,
        node::{ExpressionNode, Operator},
        operands::operands,
    },
    date,
    named::Parts,
};
use crate::{
    Code, Error, Result,
    held::Held,
    number::{Decimal, Number},
    raw::{Kind, Value},
};

fn failure(message: impl Into<Box<str>>) -> Error {
    Error::new(Code::CONVERSION_FAILURE, message)
}

pub(super) fn type_name<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    Ok(Evaluated::string(arguments.get(0).as_value().map_or("missing", |value| value.kind().alias())))
}

pub(super) fn is_number<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    Ok(arguments.get(0).as_value().and_then(Number::of).is_some().into())
}

/// The types that values are converted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConversionTarget {
    Double,
    String,
    ObjectId,
    Bool,
    Date,
    Int,
    Long,
    Decimal,
    /// A binary of this subtype.
    Binary(u8),
    /// Another type, to which no value is converted.
    Other,
}

impl ConversionTarget {
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
            "binData" => Self::Binary(0),
            _ => return None,
        })
    }

    fn of(value: Value<'_>) -> Result<Self> {
        if let Some(name) = value.as_str() {
            // MongoDB also has a type for missing values, with the name `missing` and the number 0.
            let is_type =
                || name == "missing" || (0..=u8::MAX).filter_map(Kind::from_byte).any(|kind| kind.alias() == name);
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
            Some(5) => Self::Binary(0),
            Some(-1 | 0 | 3 | 4 | 6 | 10..=15 | 17 | 127) => Self::Other,
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

fn unsupported(value: Value<'_>, target: ConversionTarget) -> Error {
    let target = match target {
        ConversionTarget::Binary(_) => "binData".into(),
        other => format!("{other:?}").to_lowercase(),
    };
    failure(format!("unsupported conversion from {} to {target}", value.kind().alias()))
}

fn out_of_range() -> Error {
    failure("the value is out of the range of the target type")
}

fn convert<'v>(
    value: Value<'_>,
    target: ConversionTarget,
    format: Option<Format>,
    order: ByteOrder,
) -> Result<Evaluated<'v>> {
    let _copies = match (target, value.kind()) {
        (ConversionTarget::String, Kind::String) => Held::of(2 * value.bytes().len())?,
        // Two hexadecimal digits for each byte, or decoded bytes in several parts.
        (ConversionTarget::String | ConversionTarget::Binary(_), _) => Held::of(4 * value.bytes().len())?,
        _ => Held::default(),
    };
    if let Some((subtype, bytes)) = value.as_binary() {
        match target {
            ConversionTarget::String => return Ok(Evaluated::string(&binary::to_text(subtype, bytes, format)?)),
            // Eight bytes are refused even if the value fits an int32.
            ConversionTarget::Int if bytes.len() > 4 => {
                return Err(failure(format!("{} bytes are no int32", bytes.len())));
            }
            ConversionTarget::Int => {
                let whole = binary::to_whole(bytes, order)?;
                return Ok(Evaluated::int32(i32::try_from(whole).map_err(|_| out_of_range())?));
            }
            ConversionTarget::Long => return Ok(Evaluated::int64(binary::to_whole(bytes, order)?)),
            ConversionTarget::Double => return Ok(Evaluated::double(binary::to_double(bytes, order)?)),
            _ => {}
        }
    }
    Ok(match target {
        ConversionTarget::Other => return Err(unsupported(value, target)),
        ConversionTarget::Binary(subtype) => binary::from(value, subtype, format, order)?,
        ConversionTarget::String => Evaluated::string(&to_text(value)?),
        ConversionTarget::Bool => to_bool(value).into(),
        ConversionTarget::Double => Evaluated::double(to_double(value)?),
        ConversionTarget::Int => Evaluated::int32(i32::try_from(to_whole(value, target)?).map_err(|_| out_of_range())?),
        ConversionTarget::Long => Evaluated::int64(to_whole(value, target)?),
        ConversionTarget::Decimal => Number::Decimal(to_decimal(value)?).into(),
        ConversionTarget::Date => Evaluated::date(to_date(value)?),
        ConversionTarget::ObjectId => match value.kind() {
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

/// Returns the text of a number, without the forms that only Rust accepts.
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
            // As in MongoDB, the prefix "0x" is refused, but "+0x1p0" and "0X1P0" are read.
            if text.starts_with("0x") {
                return Err(failure(format!("illegal hexadecimal number '{text}'")));
            }
            let double = text.parse::<f64>().ok().or_else(|| hexadecimal::parse(text));
            let double = double.ok_or_else(|| failure(format!("failed to parse number '{text}'")))?;
            let digits = text.split(['e', 'E', 'p', 'P']).next().unwrap_or_default();
            let is_zero = double == 0.0 && digits.contains(|c: char| c.is_ascii_hexdigit() && c != '0');
            if is_zero || double.is_infinite() && text.contains(|c: char| c.is_ascii_digit()) {
                return Err(out_of_range());
            }
            Ok(double)
        }
        _ => {
            let number = Number::of(value).ok_or_else(|| unsupported(value, ConversionTarget::Double))?;
            let double = number.to_f64();
            // As in MongoDB, a decimal that is neither zero nor a normal double is out of range: a subnormal one would lose its digits.
            let is_of_range = matches!(number, Number::Double(_)) || double.is_normal() || number.signum().is_eq();
            if is_of_range || !number.is_finite() { Ok(double) } else { Err(out_of_range()) }
        }
    }
}

fn to_whole(value: Value<'_>, target: ConversionTarget) -> Result<i64> {
    match value.kind() {
        Kind::Boolean => Ok(i64::from(value.as_bool() == Some(true))),
        Kind::DateTime if target == ConversionTarget::Long => Ok(value.as_millis().unwrap_or_default()),
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
            let decimal = Decimal::truncated_from_str(text);
            let decimal = decimal.map_err(|_| failure(format!("failed to parse number '{text}'")))?;
            let digits = text.split(['e', 'E']).next().unwrap_or_default();
            match decimal {
                Decimal::Infinite(_) if text.contains(|c: char| c.is_ascii_digit()) => Err(out_of_range()),
                Decimal::Finite { coefficient: 0, .. } if digits.contains(|c: char| matches!(c, '1'..='9')) => {
                    Err(out_of_range())
                }
                _ => Ok(decimal),
            }
        }
        _ => Ok(Number::of(value).ok_or_else(|| unsupported(value, ConversionTarget::Decimal))?.to_decimal()),
    }
}

fn to_date(value: Value<'_>) -> Result<i64> {
    match value.kind() {
        Kind::DateTime => Ok(value.as_millis().unwrap_or_default()),
        Kind::Int64 | Kind::Double | Kind::Decimal128 => {
            Number::of(value).and_then(Number::to_i64_truncating).ok_or_else(out_of_range)
        }
        Kind::ObjectId | Kind::Timestamp => date::millis(value).ok_or_else(out_of_range),
        Kind::String => date::from_string::without_format(value.as_str().unwrap_or_default(), &date::Zone::UTC),
        _ => Err(unsupported(value, ConversionTarget::Date)),
    }
}

/// `$convert` and the operators that convert to one type.
#[derive(Debug)]
struct Convert {
    input: Expression,
    to: To,
    format: Option<Expression>,
    byte_order: Option<Expression>,
    on_error: Option<Expression>,
    on_null: Option<Expression>,
}

#[derive(Debug)]
enum To {
    Fixed(ConversionTarget, Option<Format>),
    Computed(Expression),
}

impl Convert {
    /// Returns the target, which may depend on the document; `None` where it is null.
    fn target(&self, env: &Env<'_>, has_input: bool) -> Result<Option<ConversionTarget>> {
        let to = match &self.to {
            To::Fixed(target, _) => return Ok(Some(*target)),
            To::Computed(to) => to.evaluate(env)?,
        };
        let Some(to) = to.present() else { return Ok(None) };
        let Some(options) = to.as_document() else { return ConversionTarget::of(to).map(Some) };
        let target = ConversionTarget::of(options.get("type").unwrap_or(to))?;
        Ok(Some(match (target, options.get("subtype")) {
            (ConversionTarget::Binary(_), Some(subtype)) if has_input => {
                ConversionTarget::Binary(binary::subtype(subtype)?)
            }
            _ => target,
        }))
    }

    fn format(&self, env: &Env<'_>) -> Result<Option<Format>> {
        match (&self.to, &self.format) {
            (To::Fixed(_, format), _) => Ok(*format),
            (To::Computed(_), Some(format)) => format.evaluate(env)?.present().map(Format::parse).transpose(),
            (To::Computed(_), None) => Ok(None),
        }
    }

    fn byte_order(&self, env: &Env<'_>) -> Result<ByteOrder> {
        let Some(order) = &self.byte_order else { return Ok(ByteOrder::Little) };
        order.evaluate(env)?.present().map_or(Ok(ByteOrder::Little), ByteOrder::parse)
    }
}

impl Operator for Convert {
    fn evaluate<'v>(&'v self, env: &Env<'v>) -> Result<Evaluated<'v>> {
        let input = self.input.evaluate(env)?;
        let target = self.target(env, !input.is_nullish())?;
        let Some(value) = input.present() else {
            return self.on_null.as_ref().map_or(Ok(Evaluated::NULL), |on_null| on_null.evaluate(env));
        };
        let Some(target) = target else { return Ok(Evaluated::NULL) };
        let (format, order) = (self.format(env)?, self.byte_order(env)?);
        match (convert(value, target, format, order), &self.on_error) {
            (Err(error), Some(on_error)) if error.code() == Code::CONVERSION_FAILURE => on_error.evaluate(env),
            (converted, _) => converted,
        }
    }

    fn operands(&self) -> Vec<&Expression> {
        let to = match &self.to {
            To::Fixed(..) => None,
            To::Computed(to) => Some(to),
        };
        let options = [&self.format, &self.byte_order, &self.on_error, &self.on_null];
        [&self.input].into_iter().chain(to).chain(options.into_iter().flatten()).collect()
    }
}

fn node(convert: Convert, variables: &Variables) -> Result<Expression> {
    let is_constant = convert.operands().into_iter().all(Expression::is_constant);
    let expression = Expression(ExpressionNode::Operator(std::sync::Arc::new(convert)));
    if is_constant { expression.folded(variables) } else { Ok(expression) }
}

pub(super) fn to_type(name: &str, operand: Value<'_>, variables: &Variables) -> Result<Expression> {
    let mut format = None;
    let target = match name {
        "$toBool" => ConversionTarget::Bool,
        "$toDate" => ConversionTarget::Date,
        "$toDecimal" => ConversionTarget::Decimal,
        "$toDouble" => ConversionTarget::Double,
        "$toInt" => ConversionTarget::Int,
        "$toLong" => ConversionTarget::Long,
        "$toObjectId" => ConversionTarget::ObjectId,
        "$toUUID" => {
            format = Some(Format::Uuid);
            ConversionTarget::Binary(binary::UUID)
        }
        _ => {
            format = Some(Format::Auto);
            ConversionTarget::String
        }
    };
    let [input] = <[Expression; 1]>::try_from(operands(operand, variables)?).map_err(|operands| {
        let message = format!("expression {name} takes exactly 1 argument, {} were given", operands.len());
        Error::new(Code(50723), message)
    })?;
    let to = To::Fixed(target, format);
    node(Convert { input, to, format: None, byte_order: None, on_error: None, on_null: None }, variables)
}

pub(super) fn convert_to(name: &str, operand: Value<'_>, variables: &Variables) -> Result<Expression> {
    let names = ["input", "to", "onError", "onNull", "format", "byteOrder"];
    let mut parts = Parts::parse(name, operand, &names, variables, (9, 9))?;
    let input = parts.need(0, name, "input", 9)?;
    let to = parts.need(1, name, "to", 9)?;
    let (on_error, on_null, format, byte_order) = (parts.take(2), parts.take(3), parts.take(4), parts.take(5));
    node(Convert { input, to: To::Computed(to), format, byte_order, on_error, on_null }, variables)
}
