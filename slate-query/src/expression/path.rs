//! Paths of fields in expressions. Unlike a filter's path, a number is a field's name, never a position.

use super::{Evaluated, evaluated::ArrayWriter};
use crate::{
    Result,
    raw::{Doc, FieldName, Kind, Value},
};

/// Returns the value at a path below `value`. If the path leads to an array before its end, returns an array of the values at the
/// rest of the path below the array's documents.
///
/// # Errors
/// `ExceededMemoryLimit` (146) if that array exceeds the limit of the call.
pub(super) fn follow<'v>(value: Value<'v>, names: &[FieldName]) -> Result<Evaluated<'v>> {
    let [name, rest @ ..] = names else { return Ok(Evaluated::Borrowed(value)) };
    match value.kind() {
        Kind::Document => match Doc::new(value.bytes()).find(name) {
            Some(field) => follow(field, rest),
            None => Ok(Evaluated::Missing),
        },
        Kind::Array => {
            let mut values = ArrayWriter::default();
            for document in Doc::new(value.bytes()).values().filter(|element| element.kind() == Kind::Document) {
                if let Some(value) = follow(document, names)?.as_value() {
                    values.push(value);
                }
            }
            values.finish()
        }
        _ => Ok(Evaluated::Missing),
    }
}
