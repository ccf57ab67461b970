//! From a filter document to its tree.

use super::{
    Node,
    operators::{self, ForDocument, ForField},
};
use crate::{
    Code, Error, Result,
    path::Path,
    raw::{Doc, Kind, MAX_DEPTH, Value},
};

/// Where the parser stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope {
    /// What the conditions are asked of.
    pub(super) subject: Subject,
    depth: usize,
}

/// What conditions are asked of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// The collection's document, where operators on whole documents may stand.
    Document,
    /// An element of an array.
    Element,
}

impl Scope {
    pub(super) fn whole_document() -> Self {
        Self { subject: Subject::Document, depth: 0 }
    }

    pub(super) fn element(self) -> Self {
        Self { subject: Subject::Element, ..self }
    }

    /// One level further in.
    fn inner(self) -> Result<Self> {
        if self.depth > MAX_DEPTH {
            return Err(Error::new(Code::OVERFLOW, format!("filters may nest at most {MAX_DEPTH} deep")));
        }
        Ok(Self { depth: self.depth + 1, ..self })
    }
}

/// An operator with its operand, where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clause<'a> {
    /// The path that it is asked of; empty for what is asked of a whole document.
    pub(super) path: &'a Path,
    /// Its name, `$` included.
    pub(super) name: &'a str,
    pub(super) operand: Value<'a>,
    /// The document that it stands in: some operators have options beside them.
    pub(super) siblings: Doc<'a>,
    pub(super) scope: Scope,
}

impl Clause<'_> {
    /// A refusal of this clause.
    pub(super) fn refuse(&self, message: impl Into<Box<str>>) -> Error {
        self.refuse_with(Code::BAD_VALUE, message)
    }

    pub(super) fn refuse_with(&self, code: Code, message: impl Into<Box<str>>) -> Error {
        self.locate(Error::new(code, message))
    }

    /// Names the path in an error.
    pub(super) fn locate(&self, error: Error) -> Error {
        let path = self.path.as_str();
        if path.is_empty() { error } else { error.at(path) }
    }
}

/// Parses a filter document.
pub(super) fn document(filter: Doc<'_>, scope: Scope) -> Result<Node> {
    let scope = scope.inner()?;
    let mut parsed = Parsed::default();
    for element in filter.elements() {
        let name = name_of(element.name)?;
        if name.starts_with('$') {
            let none = Path::parse("")?;
            let clause = Clause { path: &none, name, operand: element.value, siblings: filter, scope };
            let node = match operators::for_document(name) {
                Some(ForDocument::Known(parse)) => parse(clause)?,
                Some(ForDocument::Unsupported) => return Err(Error::unsupported(name)),
                None => return Err(clause.refuse(unknown(name))),
            };
            node.into_iter().for_each(|node| parsed.push(node));
            continue;
        }
        let path = path_of(name)?;
        if is_operators(element.value) {
            let operators = element.value.as_document().unwrap_or(filter);
            push_operators(&path, operators, scope, &mut parsed)?;
        } else {
            let clause = Clause { path: &path, name: "$eq", operand: element.value, siblings: filter, scope };
            parsed.push(operators::implicit(clause)?);
        }
    }
    Ok(parsed.all())
}

/// Conditions of a document as they are parsed. Most filters have one, which takes no list.
#[derive(Default)]
enum Parsed {
    #[default]
    Nothing,
    One(Node),
    Several(Vec<Node>),
}

impl Parsed {
    fn push(&mut self, next: Node) {
        match self {
            Self::Nothing => *self = Self::One(next),
            Self::Several(nodes) => nodes.push(next),
            Self::One(_) => {
                let mut nodes = Vec::with_capacity(4);
                nodes.extend(match std::mem::take(self) {
                    Self::One(first) => Some(first),
                    Self::Nothing | Self::Several(_) => None,
                });
                nodes.push(next);
                *self = Self::Several(nodes);
            }
        }
    }

    /// Their conjunction.
    fn all(self) -> Node {
        match self {
            Self::Nothing => Node::all(Vec::new()),
            Self::One(only) => only,
            Self::Several(nodes) => Node::all(nodes),
        }
    }
}

fn unknown(name: &str) -> String {
    let hint = match name {
        "$not" => "If you are trying to negate an entire expression, use $nor.",
        _ => "If you have a field name that starts with a '$' symbol, consider using $getField or $setField.",
    };
    format!("unknown top level operator: {name}. {hint}")
}

/// Parses the operators asked of a path: `{$gt: 5, $lt: 8}`.
pub(super) fn field_operators(path: &Path, operators: Doc<'_>, scope: Scope) -> Result<Node> {
    let mut parsed = Parsed::default();
    push_operators(path, operators, scope, &mut parsed)?;
    Ok(parsed.all())
}

/// The same, each operator by itself.
fn push_operators(path: &Path, operators: Doc<'_>, scope: Scope, parsed: &mut Parsed) -> Result<()> {
    let scope = scope.inner()?;
    for element in operators.elements() {
        let name = name_of(element.name)?;
        let clause = Clause { path, name, operand: element.value, siblings: operators, scope };
        let node = match operators::for_field(name) {
            Some(ForField::Known(parse)) => parse(clause)?,
            Some(ForField::Unsupported) => return Err(clause.locate(Error::unsupported(name))),
            None => return Err(clause.refuse(format!("unknown operator: {name}"))),
        };
        node.into_iter().for_each(|node| parsed.push(node));
    }
    Ok(())
}

/// Parses operators asked of a value: the path is a name that stands for it.
pub(super) fn operators(document: Doc<'_>) -> Result<Node> {
    field_operators(&Path::parse("")?, document, Scope::whole_document())
}

/// Parses a bare value: a regular expression to match, or a value to equal.
pub(super) fn equality_or_regex(value: Value<'_>) -> Result<Node> {
    let path = Path::parse("")?;
    let scope = Scope::whole_document();
    operators::implicit(Clause { path: &path, name: "$eq", operand: value, siblings: Doc::new(&[]), scope })
}

/// Whether a value in a filter is a document of operators, not a literal: its first name begins with `$` and it is no
/// reference (`$ref` and `$id`).
pub(super) fn is_operators(value: Value<'_>) -> bool {
    value.as_document().is_some_and(|document| {
        let first = document.elements().next();
        let dollar = first.is_some_and(|element| element.name.starts_with(b"$"));
        dollar && !(document.get("$ref").is_some() && document.get("$id").is_some())
    })
}

/// Whether the document's first name is an operator on a path.
pub(super) fn begins_with_operator(document: Doc<'_>) -> bool {
    let name = document.elements().next().and_then(|element| std::str::from_utf8(element.name).ok());
    name.is_some_and(operators::is_for_field)
}

/// The whole number that an operand is.
///
/// # Errors
/// `FailedToParse` (9) where it is none that int64 holds.
pub(super) fn integer(value: Value<'_>) -> Result<i64> {
    let refuse = |message: String| Err(Error::new(Code::FAILED_TO_PARSE, message));
    let Some(number) = crate::number::Number::of(value) else {
        return refuse(format!("Expected a number in: {value:?}"));
    };
    match number.to_i64() {
        Some(int) => Ok(int),
        None if number.is_nan() => refuse(format!("Expected an integer, but found NaN in: {value:?}")),
        None if number.to_i64_truncating().is_some() => refuse(format!("Expected an integer: {value:?}")),
        None => refuse(format!("Cannot represent as a 64-bit integer: {value:?}")),
    }
}

/// The whole number, not negative, that an operand is.
///
/// # Errors
/// As [`integer`], and where it is negative.
pub(super) fn natural(value: Value<'_>) -> Result<u64> {
    let int = integer(value)?;
    u64::try_from(int)
        .map_err(|_| Error::new(Code::FAILED_TO_PARSE, format!("Expected a non-negative number in: {value:?}")))
}

/// What BSON takes for true: all but false, zeros, null and undefined.
pub(super) fn truth(value: Value<'_>) -> bool {
    match value.kind() {
        Kind::Boolean => value.as_bool() == Some(true),
        Kind::Null | Kind::Undefined => false,
        Kind::Double | Kind::Int32 | Kind::Int64 | Kind::Decimal128 => {
            crate::number::Number::of(value).is_none_or(|number| number.signum().is_ne())
        }
        Kind::String
        | Kind::Document
        | Kind::Array
        | Kind::Binary
        | Kind::ObjectId
        | Kind::DateTime
        | Kind::Regex
        | Kind::DbPointer
        | Kind::Code
        | Kind::Symbol
        | Kind::CodeWithScope
        | Kind::Timestamp
        | Kind::MaxKey
        | Kind::MinKey => true,
    }
}

fn name_of(name: &[u8]) -> Result<&str> {
    std::str::from_utf8(name).map_err(|_| Error::new(Code::BAD_VALUE, "a field's name in a filter is not UTF-8"))
}

/// MongoDB's limit of a path's names in a filter.
const MAX_NAMES: usize = 180;

fn path_of(name: &str) -> Result<Path> {
    if name.bytes().filter(|&byte| byte == b'.').count() >= MAX_NAMES {
        return Err(Error::new(Code(5_729_100), "FieldPath is too long"));
    }
    Path::parse(name)
}
