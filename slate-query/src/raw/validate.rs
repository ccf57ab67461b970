use super::{
    Doc, Element, Kind, Value,
    doc::{Terminator, terminator},
    kind::measure,
    value::length,
};
use crate::{Code, Error, Result};

/// The deepest nesting of documents and arrays, counting the outermost document. MongoDB has the same limit.
pub const MAX_DEPTH: usize = 180;

/// Checks that `bytes` are exactly one document: lengths, terminators, types, UTF-8, booleans and depth. The names of
/// array elements are not checked. Takes one pass over the bytes.
///
/// # Errors
/// `InvalidBSON` (22) with the path of the damage; `Overflow` (15) if the document nests deeper than [`MAX_DEPTH`].
pub fn validate(bytes: &[u8]) -> Result<Doc<'_>> {
    validate_each(bytes, |_, _| {})?;
    Ok(Doc::new(bytes))
}

/// Checks the depth of a document's field: for code that recurses over the field before the document is validated.
///
/// # Errors
/// `Overflow` (15) if the document nests deeper than [`MAX_DEPTH`].
#[inline]
pub fn validate_depth(field: Value<'_>) -> Result<()> {
    if field.is_deeper_than(MAX_DEPTH - 1) { Err(too_deep()) } else { Ok(()) }
}

/// Validates like [`validate`], and calls `visit` with the offset and the content of each top-level field.
pub(super) fn validate_each<'a>(bytes: &'a [u8], visit: impl FnMut(usize, Element<'a>)) -> Result<()> {
    document(bytes, 1, visit).map_err(|error| *error)
}

/// The result of a check. The error is boxed so that the result fits a register.
type Checked = std::result::Result<(), Box<Error>>;

#[cold]
fn damaged(what: &str) -> Box<Error> {
    Box::new(Error::new(Code::INVALID_BSON, format!("invalid BSON: {what}")))
}

/// Returns the error for a document that nests deeper than [`MAX_DEPTH`]: `Overflow` (15).
#[cold]
pub fn too_deep() -> Error {
    Error::new(Code::OVERFLOW, format!("documents may nest at most {MAX_DEPTH} deep"))
}

fn document<'a>(bytes: &'a [u8], depth: usize, mut visit: impl FnMut(usize, Element<'a>)) -> Checked {
    if depth > MAX_DEPTH {
        return Err(Box::new(too_deep()));
    }
    if length(bytes) != Some(bytes.len()) || bytes.last() != Some(&0) || bytes.len() < 5 {
        return Err(damaged("a document's length does not match its bytes"));
    }
    let mut rest = bytes.get(4..).unwrap_or_default();
    while rest.len() > 1 {
        let Some((element, is_ascii, behind)) = front(rest) else {
            return Err(damaged("an element is cut short or of an unknown type"));
        };
        if !is_ascii && std::str::from_utf8(element.name).is_err() {
            return Err(damaged("a field's name is not UTF-8"));
        }
        value(element.value, depth).map_err(|error| nest(element.name, &error))?;
        visit(bytes.len() - rest.len(), element);
        rest = behind;
    }
    if rest.len() != 1 {
        return Err(damaged("an element is cut short or of an unknown type"));
    }
    Ok(())
}

/// Splits off the field at the start of `rest`, and returns whether its name is ASCII.
#[inline(always)]
fn front(rest: &[u8]) -> Option<(Element<'_>, bool, &[u8])> {
    let (&byte, rest) = rest.split_first()?;
    let Terminator { at, is_ascii } = terminator(rest)?;
    let (name, rest) = rest.split_at_checked(at)?;
    let (_, rest) = rest.split_first()?;
    let (bytes, behind) = rest.split_at_checked(measure(byte, rest)?)?;
    Some((Element { name, value: Value::new(Kind::from_byte(byte)?, bytes) }, is_ascii, behind))
}

/// Prepends the field's name to the path in the error.
#[cold]
fn nest(name: &[u8], error: &Error) -> Box<Error> {
    let name = String::from_utf8_lossy(name);
    let path = error.path().map_or(name.to_string(), |inner| format!("{name}.{inner}"));
    Box::new(Error::new(error.code(), error.message()).at(path))
}

/// Checks a value of any type.
#[inline(always)]
fn value(value: Value<'_>, depth: usize) -> Checked {
    let bytes = value.bytes();
    match value.kind() {
        Kind::String | Kind::Symbol | Kind::Code => text(bytes),
        Kind::Boolean if !matches!(bytes, [0 | 1]) => Err(damaged("a boolean is neither 0 nor 1")),
        Kind::Document | Kind::Array => document(bytes, depth + 1, |_, _| {}),
        Kind::Regex => regex(bytes),
        Kind::DbPointer => text(bytes.get(..bytes.len().saturating_sub(12)).unwrap_or_default()),
        Kind::Binary => binary(value),
        Kind::CodeWithScope => code_with_scope(bytes, depth),
        // The values of all other types have a fixed size, which was checked already.
        _ => Ok(()),
    }
}

#[inline(never)]
fn regex(bytes: &[u8]) -> Checked {
    std::str::from_utf8(bytes).map(drop).map_err(|_| damaged("a regular expression is not UTF-8"))
}

#[inline(never)]
fn binary(value: Value<'_>) -> Checked {
    match value.as_binary() {
        Some((2, payload)) if length(payload).and_then(|inner| inner.checked_add(4)) != Some(payload.len()) => {
            Err(damaged("a binary of subtype 2 has a wrong inner length"))
        }
        Some(_) => Ok(()),
        None => Err(damaged("a binary is cut short")),
    }
}

#[inline(never)]
fn code_with_scope(bytes: &[u8], depth: usize) -> Checked {
    let end = bytes.get(4..).and_then(length).and_then(|inner| inner.checked_add(8));
    let (code, scope) =
        end.and_then(|end| bytes.split_at_checked(end)).ok_or_else(|| damaged("a code with scope is cut short"))?;
    text(code.get(4..).unwrap_or_default())?;
    document(scope, depth + 1, |_, _| {})
}

/// Most texts are short and ASCII, which a plain loop finds faster than a call to `from_utf8`.
#[inline]
fn is_utf8(text: &[u8]) -> bool {
    text.is_ascii() || std::str::from_utf8(text).is_ok()
}

fn text(bytes: &[u8]) -> Checked {
    match bytes {
        [_, _, _, _, text @ .., 0] if length(bytes) == Some(text.len() + 1) => {
            if is_utf8(text) {
                Ok(())
            } else {
                Err(damaged("a string is not UTF-8"))
            }
        }
        _ => Err(damaged("a string is cut short")),
    }
}
