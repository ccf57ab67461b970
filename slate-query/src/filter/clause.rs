//! The arguments of an operator's parser, and how parsers read operands.

use crate::{
    Code, Error, Result,
    collation::Collation,
    expression::Bindings,
    number::Number,
    path::Path,
    raw::{Doc, Element, Kind, MAX_DEPTH, Value},
};

/// The context of a position in a filter: what its conditions are evaluated on, and what is allowed there.
#[derive(Clone, Copy)]
pub(super) struct ClauseScope<'a> {
    /// The values on which the conditions are evaluated.
    pub(super) subject: Subject,
    /// The variables of expressions; `None` where expressions are not allowed.
    pub(super) bindings: Option<&'a dyn BindingsSource>,
    /// How strings are compared, if not by their bytes.
    pub(super) collation: Option<&'a Collation>,
    /// Whether `$jsonSchema` is allowed.
    pub(super) admits_schemas: bool,
    depth: usize,
}

/// A source of the variables of expressions. The parser calls it at each expression, so an implementation should compute them once.
pub trait BindingsSource {
    /// Returns the variables.
    ///
    /// # Errors
    /// Those of a variable that cannot be computed.
    fn bindings(&self) -> Result<&Bindings>;
}

impl BindingsSource for Bindings {
    fn bindings(&self) -> Result<&Bindings> {
        Ok(self)
    }
}

/// What conditions are evaluated on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// The collection's document, where operators on whole documents are allowed.
    Document,
    /// An element of an array.
    Element,
}

impl<'a> ClauseScope<'a> {
    pub(super) fn whole_document(collation: Option<&'a Collation>, bindings: Option<&'a dyn BindingsSource>) -> Self {
        Self { subject: Subject::Document, bindings, collation, admits_schemas: true, depth: 0 }
    }

    pub(super) fn element(self) -> Self {
        Self { subject: Subject::Element, ..self }
    }

    /// Returns the scope of a part of an update, a projection or an index, where MongoDB allows neither `$expr` nor `$jsonSchema`.
    pub(super) fn part(collation: Option<&'a Collation>) -> Self {
        Self { admits_schemas: false, ..Self::whole_document(collation, None) }
    }

    /// Returns the same scope without a collation, for conditions whose strings the collation has replaced already.
    pub(super) fn uncollated(self) -> Self {
        Self { collation: None, ..self }
    }

    /// Returns the scope one nesting level further in. Fails with `Overflow` (15) beyond [`MAX_DEPTH`] levels.
    pub(super) fn inner(self) -> Result<Self> {
        if self.depth > MAX_DEPTH {
            return Err(Error::new(Code::OVERFLOW, format!("filters may nest at most {MAX_DEPTH} deep")));
        }
        Ok(Self { depth: self.depth + 1, ..self })
    }
}

/// An operator with its operand and its context.
#[derive(Clone, Copy)]
pub(super) struct Clause<'a> {
    /// The path that it applies to; empty for operators on whole documents.
    pub(super) path: &'a Path,
    /// The operator's name, `$` included.
    pub(super) name: &'a str,
    pub(super) operand: Value<'a>,
    /// The document that contains the operator: some operators have options in the same document.
    pub(super) siblings: Doc<'a>,
    pub(super) scope: ClauseScope<'a>,
}

impl Clause<'_> {
    /// Returns a `BadValue` (2) error at this clause's path.
    pub(super) fn refuse(&self, message: impl Into<Box<str>>) -> Error {
        self.refuse_with(Code::BAD_VALUE, message)
    }

    pub(super) fn refuse_with(&self, code: Code, message: impl Into<Box<str>>) -> Error {
        self.locate(Error::new(code, message))
    }

    /// Adds the path to an error.
    pub(super) fn locate(&self, error: Error) -> Error {
        let path = self.path.as_str();
        if path.is_empty() { error } else { error.at(path) }
    }
}

/// Reads an operand as an integer.
///
/// # Errors
/// `FailedToParse` (9) where it is not a whole number within int64.
pub(super) fn integer(value: Value<'_>) -> Result<i64> {
    let refuse = |message: String| Err(Error::new(Code::FAILED_TO_PARSE, message));
    let Some(number) = Number::of(value) else {
        return refuse(format!("Expected a number in: {value:?}"));
    };
    match number.to_i64() {
        Some(int) => Ok(int),
        None if number.is_nan() => refuse(format!("Expected an integer, but found NaN in: {value:?}")),
        None if number.to_i64_truncating().is_some() => refuse(format!("Expected an integer: {value:?}")),
        None => refuse(format!("Cannot represent as a 64-bit integer: {value:?}")),
    }
}

/// Reads an operand as an integer that is not negative.
///
/// # Errors
/// Fails as [`integer`] does, and if the operand is negative.
pub(super) fn natural(value: Value<'_>) -> Result<u64> {
    let int = integer(value)?;
    u64::try_from(int)
        .map_err(|_| Error::new(Code::FAILED_TO_PARSE, format!("Expected a non-negative number in: {value:?}")))
}

/// Converts to a boolean as MongoDB does: everything but false, zeros, null and undefined is true.
pub(super) fn truth(value: Value<'_>) -> bool {
    match value.kind() {
        Kind::Null | Kind::Undefined => false,
        Kind::Boolean => value.as_bool() == Some(true),
        _ => Number::of(value).is_none_or(|number| number.signum().is_ne()),
    }
}

/// Returns whether a value in a filter is a document of operators, not a literal: its first name begins with `$`, and
/// it is not a reference (`$ref` and `$id`).
pub(super) fn is_operators(value: Value<'_>) -> bool {
    value.as_document().is_some_and(|document| {
        let first = document.elements().next();
        let dollar = first.is_some_and(|element| element.name.starts_with(b"$"));
        dollar && !(document.get("$ref").is_some() && document.get("$id").is_some())
    })
}

/// Returns whether an operand is or contains a regular expression or a field `$regex`.
pub(super) fn reads_text(value: Value<'_>) -> bool {
    let within = |element: Element<'_>| element.name == b"$regex" || reads_text(element.value);
    value.kind() == Kind::Regex || value.as_container().is_some_and(|container| container.elements().any(within))
}
