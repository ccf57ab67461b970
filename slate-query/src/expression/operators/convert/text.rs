//! Values as text.

use bson::oid::ObjectId;

use super::{ConversionTarget, unsupported};
use crate::{
    Code, Error, Result,
    number::non_finite_name,
    raw::{Kind, Value},
};

/// The dates of the years 0 to 9999, in milliseconds since 1970.
const WRITTEN_DATES: std::ops::RangeInclusive<i64> = -62_167_219_200_000..=253_402_300_799_999;

/// Returns a value as text, as `$toString` gives it.
pub(in crate::expression::operators) fn to_text(value: Value<'_>) -> Result<String> {
    Ok(match value.kind() {
        Kind::String | Kind::Symbol => String::from_utf8_lossy(value.text().unwrap_or_default()).into_owned(),
        Kind::Boolean => value.as_bool().unwrap_or_default().to_string(),
        Kind::Int32 => value.as_i32().unwrap_or_default().to_string(),
        Kind::Int64 => value.as_i64().unwrap_or_default().to_string(),
        Kind::Double => double_to_text(value.as_f64().unwrap_or_default()),
        Kind::Decimal128 => bson::Decimal128::from_bytes(value.as_decimal().unwrap_or_default()).to_string(),
        Kind::ObjectId => ObjectId::from_bytes(value.as_object_id().unwrap_or_default()).to_hex(),
        Kind::DateTime => {
            let millis = value.as_millis().filter(|millis| WRITTEN_DATES.contains(millis));
            let outside = || Error::new(Code(18537), "$toString is only defined on dates of the years 0 to 9999");
            millis.map(bson::DateTime::from_millis).and_then(date_to_text).ok_or_else(outside)?
        }
        _ => return Err(unsupported(value, ConversionTarget::String)),
    })
}

/// Returns a date in ISO 8601 with milliseconds.
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

/// Returns a number whose exponent has a sign and at least two digits, as C prints it.
fn scientific(text: &str) -> String {
    match text.split_once('e') {
        Some((digits, power)) if !power.starts_with('-') => format!("{digits}e+{power:0>2}"),
        Some((digits, power)) => format!("{digits}e-{:0>2}", power.trim_start_matches('-')),
        None => text.into(),
    }
}

/// Returns a double with six significant digits, as C prints `%g`.
pub(in crate::expression::operators) fn six_digits(double: f64) -> String {
    if let Some(name) = non_finite_name(double) {
        return name.into();
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
