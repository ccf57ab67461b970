//! The order of an array's elements: the `$sort` of `$push`, and `$sortArray`.

use std::cmp::Ordering;

use crate::{
    Code, Error, Result,
    collation::{Collation, compare},
    key::Direction,
    number::Number,
    path::{Part, Path},
    raw::{Doc, Value},
};

/// The order of the elements.
#[derive(Debug)]
pub(crate) enum ArraySort {
    /// Sorts elements by their whole values.
    Whole(Direction),
    /// Documents by these fields. Other values sort as documents without fields.
    Fields(Vec<(Path, Direction)>),
}

impl ArraySort {
    /// Parses 1, -1 or a document of such numbers.
    ///
    /// # Errors
    /// `BadValue` (2).
    pub(crate) fn parse(argument: Value<'_>) -> Result<Self> {
        if argument.kind().is_number() {
            return direction(argument).map(Self::Whole);
        }
        let Some(fields) = argument.as_document() else {
            return Err(refuse("the $sort is 1 or -1 to sort whole elements, or {field: 1 | -1}"));
        };
        if fields.is_empty() {
            return Err(refuse("the $sort pattern is empty"));
        }
        let parse = |name: &[u8], value: Value<'_>| {
            let direction = direction(value)?;
            let path = Path::parse(std::str::from_utf8(name).map_err(|_| refuse("a $sort field is not UTF-8"))?)?;
            if path.parts().iter().any(|part| part.name().is_empty()) {
                return Err(refuse("a $sort field has an empty part").at(path.as_str()));
            }
            Ok((path, direction))
        };
        fields.elements().map(|field| parse(field.name, field.value)).collect::<Result<_>>().map(Self::Fields)
    }

    /// Compares two elements.
    pub(crate) fn compare(&self, a: Value<'_>, b: Value<'_>, collation: Option<&Collation>) -> Ordering {
        match self {
            Self::Whole(direction) => directed(*direction, compare(collation, a, b)),
            Self::Fields(fields) => fields
                .iter()
                .map(|(path, direction)| directed(*direction, compare(collation, field(path, a), field(path, b))))
                .find(|order| *order != Ordering::Equal)
                .unwrap_or(Ordering::Equal),
        }
    }
}

fn directed(direction: Direction, order: Ordering) -> Ordering {
    match direction {
        Direction::Ascending => order,
        Direction::Descending => order.reverse(),
    }
}

fn direction(value: Value<'_>) -> Result<Direction> {
    match Number::of(value).and_then(Number::to_i64) {
        Some(1) => Ok(Direction::Ascending),
        Some(-1) => Ok(Direction::Descending),
        Some(_) | None => Err(refuse("a $sort direction is 1 or -1")),
    }
}

/// Returns the value that an element is sorted by; null if it is missing.
fn field<'a>(path: &Path, element: Value<'a>) -> Value<'a> {
    element.as_document().and_then(|document| descend(path, path.parts(), document)).unwrap_or(Value::NULL)
}

/// Finds the value at a path by MongoDB's rule for sorts of arrays: a field whose name is the rest of the path, including
/// dots, takes precedence, and array positions are ordinary names.
fn descend<'a>(path: &Path, parts: &[Part], doc: Doc<'a>) -> Option<Value<'a>> {
    let (first, rest) = parts.split_first()?;
    if rest.is_empty() {
        return doc.get(first.name());
    }
    let skipped = path.parts().len() - parts.len();
    let literal = path.as_str().splitn(skipped + 1, '.').last().and_then(|name| doc.get(name));
    literal.or_else(|| descend(path, rest, doc.get(first.name())?.as_container()?))
}

fn refuse(message: &str) -> Error {
    Error::new(Code::BAD_VALUE, message)
}
