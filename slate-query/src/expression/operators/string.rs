//! Operators on strings. Lengths and positions are in bytes (`…Bytes`) or in code points (`…CP`).

use std::borrow::Cow;

use super::{
    super::{
        Evaluated,
        arguments::Arguments,
        evaluated::{ArrayWriter, check_size},
    },
    array::range,
    convert, date,
};
use crate::{
    Code, Error, Result,
    held::Held,
    number::{Number, Rounding},
    raw::{Kind, Value},
};

/// Returns an operand as a string. As in MongoDB, null becomes the empty string, and numbers, dates and timestamps
/// become their text.
fn coerced<'a>(arguments: &Arguments<'_, '_>, operand: &'a Evaluated<'_>) -> Result<Cow<'a, str>> {
    let Some(value) = operand.present() else { return Ok("".into()) };
    Ok(match value.kind() {
        Kind::String | Kind::Symbol | Kind::Code => String::from_utf8_lossy(value.text().unwrap_or_default()),
        Kind::Double => convert::six_digits(value.as_f64().unwrap_or_default()).into(),
        Kind::Int32 | Kind::Int64 | Kind::Decimal128 | Kind::DateTime => convert::to_text(value)?.into(),
        Kind::Timestamp => date::timestamp_to_text(value.as_timestamp().unwrap_or_default())?.into(),
        _ => return Err(arguments.wrong_type(16007, "a string", operand)),
    })
}

/// Returns an operand's text, changed by `change`, which returns about as many bytes.
fn changed<'v>(arguments: &Arguments<'_, 'v>, change: fn(&str) -> String) -> Result<Evaluated<'v>> {
    let text = coerced(arguments, arguments.get(0))?;
    let _held = Held::of(2 * text.len())?;
    Ok(Evaluated::string(&change(&text)))
}

pub(super) fn concat<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let mut texts = Vec::with_capacity(arguments.values.len());
    for operand in &*arguments.values {
        let Some(value) = operand.present() else { return Ok(Evaluated::NULL) };
        texts.push(value.as_str().ok_or_else(|| arguments.wrong_type(16702, "strings", operand))?);
    }
    let bytes = texts.iter().map(|text| text.len()).sum();
    check_size(bytes)?;
    let _held = Held::of(2 * bytes)?;
    Ok(Evaluated::string(&texts.concat()))
}

pub(super) fn to_lower<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    changed(&arguments, str::to_ascii_lowercase)
}

pub(super) fn to_upper<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    changed(&arguments, str::to_ascii_uppercase)
}

pub(super) fn strcasecmp<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let [left, right] = [coerced(&arguments, arguments.get(0))?, coerced(&arguments, arguments.get(1))?];
    let [left, right] = [&left, &right].map(|text| text.bytes().map(|byte| byte.to_ascii_uppercase()));
    Ok(Evaluated::int32(left.cmp(right) as i32))
}

pub(super) fn length_in_bytes<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    Ok(Evaluated::count(arguments.read(0, Value::as_str, 34473, "a string")?.len()))
}

pub(super) fn length_in_code_points<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    Ok(Evaluated::count(arguments.read(0, Value::as_str, 34471, "a string")?.chars().count()))
}

/// Returns a number of bytes. As in MongoDB, a double is truncated and must be in the range of int64; a decimal is
/// rounded, and a decimal beyond that range is the least int64.
fn truncated(arguments: &Arguments<'_, '_>, place: usize, code: i32) -> Result<i64> {
    match arguments.read(place, Number::of, code, "numbers as position and length")? {
        Number::Decimal(decimal) => {
            Ok(Number::Decimal(decimal.to_places(0, Rounding::HalfEven)).to_i64().unwrap_or(i64::MIN))
        }
        other => other
            .to_i64_truncating()
            .ok_or_else(|| Error::new(Code(31109), format!("{} takes numbers in the range of int64", arguments.name))),
    }
}

pub(super) fn substr_bytes<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let text = coerced(&arguments, arguments.get(0))?;
    let (start, length) = (truncated(&arguments, 1, 16034)?, truncated(&arguments, 2, 16035)?);
    let start = usize::try_from(start)
        .map_err(|_| Error::new(Code(50752), format!("{} takes a start that is not negative", arguments.name)))?;
    let end = usize::try_from(length).map_or(text.len(), |length| start.saturating_add(length)).min(text.len());
    if start >= text.len() {
        return Ok(Evaluated::string(""));
    }
    if !text.is_char_boundary(start) {
        return Err(Error::new(Code(28656), format!("{}: the start is within a character", arguments.name)));
    }
    if !text.is_char_boundary(end) {
        return Err(Error::new(Code(28657), format!("{}: the end is within a character", arguments.name)));
    }
    let part = text.get(start..end).unwrap_or_default();
    let _held = Held::of(part.len())?;
    Ok(Evaluated::string(part))
}

pub(super) fn substr_code_points<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let text = coerced(&arguments, arguments.get(0))?;
    let whole = |place: usize, type_code, whole_code| {
        let number = arguments.read(place, Number::of, type_code, "numbers")?;
        let whole = number.to_i64().and_then(|whole| i32::try_from(whole).ok());
        whole.ok_or_else(|| Error::new(Code(whole_code), "$substrCP takes whole numbers in the range of int32"))
    };
    let (start, length) = (whole(1, 34450, 34451)?, whole(2, 34452, 34453)?);
    let size = |whole: i32, code| {
        usize::try_from(whole).map_err(|_| Error::new(Code(code), "$substrCP takes no negative numbers"))
    };
    let length = size(length, 34454)?;
    let start = size(start, 34455)?;
    let at = |text: &str, place| text.char_indices().nth(place).map_or(text.len(), |(byte, _)| byte);
    let rest = text.get(at(&text, start)..).unwrap_or_default();
    let part = rest.get(..at(rest, length)).unwrap_or_default();
    let _held = Held::of(part.len())?;
    Ok(Evaluated::string(part))
}

pub(super) fn split<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    if arguments.has_null() {
        return Ok(Evaluated::NULL);
    }
    let input = arguments.read(0, Value::as_str, 40085, "a string")?;
    let separator = arguments.read(1, Value::as_str, 10_503_900, "a string as separator")?;
    if separator.is_empty() {
        return Err(Error::new(Code(40087), "the separator of $split is not empty"));
    }
    let mut parts = ArrayWriter::default();
    for part in input.split(separator) {
        let _part = Held::of(part.len())?;
        parts.push(Evaluated::string(part).or_null());
        parts.check()?;
    }
    parts.finish()
}

pub(super) fn index_of_bytes<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let input = arguments.read_present(0, Value::as_str, 40091, "a string")?;
    let Some(input) = input else { return Ok(Evaluated::NULL) };
    let wanted = arguments.read(1, Value::as_str, 40092, "a string to find")?;
    let (start, end) = range(&arguments, 40096, 40097)?;
    let end = end.min(input.len());
    if start > end {
        return Ok(Evaluated::int32(-1));
    }
    if wanted.is_empty() {
        return Ok(Evaluated::count(start));
    }
    // A text begins and ends where characters do.
    let from = (start..=end).find(|at| input.is_char_boundary(*at)).unwrap_or(end);
    let to = (from..=end).rev().find(|at| input.is_char_boundary(*at)).unwrap_or(from);
    let found = input.get(from..to).and_then(|part| part.find(wanted));
    Ok(found.map_or(Evaluated::int32(-1), |place| Evaluated::count(from + place)))
}

pub(super) fn index_of_code_points<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let input = arguments.read_present(0, Value::as_str, 40093, "a string")?;
    let Some(input) = input else { return Ok(Evaluated::NULL) };
    let wanted = arguments.read(1, Value::as_str, 40094, "a string to find")?;
    let (start, end) = range(&arguments, 40096, 40097)?;
    // As in MongoDB, the empty text is found in the empty text although that has no position before its end.
    if input.is_empty() && wanted.is_empty() && start == 0 {
        return Ok(Evaluated::int32(0));
    }
    // The text that is found begins before the end, and may reach beyond it.
    let Some((from, _)) = input.char_indices().nth(start).filter(|_| start < end) else {
        return Ok(Evaluated::int32(-1));
    };
    let rest = input.get(from..).unwrap_or_default();
    let found = rest.find(wanted).map(|at| start + rest.get(..at).unwrap_or_default().chars().count());
    Ok(found.filter(|place| *place < end).map_or(Evaluated::int32(-1), Evaluated::count))
}
