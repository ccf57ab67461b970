use super::{
    Doc, Element, Kind, Value,
    doc::{Terminator, terminator},
    kind::measure,
    value::length,
};
use crate::{Code, Error, Result};

/// How deep documents and arrays may nest, the outermost document counted. MongoDB's own limit.
pub const MAX_DEPTH: usize = 180;

/// Checks that `bytes` are one whole document: lengths, terminators, types, UTF-8, booleans, depth, array positions not
/// included. Cost: one pass over the bytes.
///
/// # Errors
/// `InvalidBSON` (22) with the path of the damage; `Overflow` (15) where it nests deeper than [`MAX_DEPTH`].
pub fn validate(bytes: &[u8]) -> Result<Doc<'_>> {
    validate_each(bytes, |_, _| {})?;
    Ok(Doc::new(bytes))
}

/// The same; `see` is shown each field of the outermost document on the way, and where it stands.
pub(super) fn validate_each<'a>(bytes: &'a [u8], see: impl FnMut(usize, Element<'a>)) -> Result<()> {
    document(bytes, 1, see).map_err(|error| *error)
}

/// What checking gives. An error is behind a pointer, so that what comes back from each value fits a register.
type Checked = std::result::Result<(), Box<Error>>;

#[cold]
fn damaged(what: &str) -> Box<Error> {
    Box::new(Error::new(Code::INVALID_BSON, format!("invalid BSON: {what}")))
}

#[cold]
fn too_deep() -> Box<Error> {
    Box::new(Error::new(Code::OVERFLOW, format!("documents may nest at most {MAX_DEPTH} deep")))
}

fn document<'a>(bytes: &'a [u8], depth: usize, mut see: impl FnMut(usize, Element<'a>)) -> Checked {
    if depth > MAX_DEPTH {
        return Err(too_deep());
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
        see(bytes.len() - rest.len(), element);
        rest = behind;
    }
    if rest.len() != 1 {
        return Err(damaged("an element is cut short or of an unknown type"));
    }
    Ok(())
}

/// The field at the front of a document's bytes, whether its name is ASCII, and what is behind it.
#[inline(always)]
fn front(rest: &[u8]) -> Option<(Element<'_>, bool, &[u8])> {
    let (&byte, rest) = rest.split_first()?;
    let Terminator { at, is_ascii } = terminator(rest)?;
    let (name, rest) = rest.split_at_checked(at)?;
    let (_, rest) = rest.split_first()?;
    let (bytes, behind) = rest.split_at_checked(measure(byte, rest)?)?;
    Some((Element { name, value: Value::new(Kind::from_byte(byte)?, bytes) }, is_ascii, behind))
}

/// Puts the name of the field in front of where the error stands within it.
#[cold]
fn nest(name: &[u8], error: &Error) -> Box<Error> {
    let name = String::from_utf8_lossy(name);
    let path = error.path().map_or(name.to_string(), |inner| format!("{name}.{inner}"));
    Box::new(Error::new(error.code(), error.message()).at(path))
}

/// Checks a value in place where that is little work; the other types, rarer, are apart.
#[inline(always)]
fn value(value: Value<'_>, depth: usize) -> Checked {
    let bytes = value.bytes();
    match value.kind() {
        Kind::String | Kind::Symbol | Kind::Code => text(bytes),
        Kind::Boolean if !matches!(bytes, [0 | 1]) => Err(damaged("a boolean is neither 0 nor 1")),
        Kind::Double
        | Kind::Undefined
        | Kind::ObjectId
        | Kind::Boolean
        | Kind::DateTime
        | Kind::Null
        | Kind::Int32
        | Kind::Timestamp
        | Kind::Int64
        | Kind::Decimal128
        | Kind::MaxKey
        | Kind::MinKey => Ok(()),
        Kind::Document | Kind::Array => document(bytes, depth + 1, |_, _| {}),
        Kind::Regex => regex(bytes),
        Kind::DbPointer => text(bytes.get(..bytes.len().saturating_sub(12)).unwrap_or_default()),
        Kind::Binary => binary(value),
        Kind::CodeWithScope => code_with_scope(bytes, depth),
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

/// Most texts are short and ASCII, which is seen in less time than it takes to begin checking them.
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
