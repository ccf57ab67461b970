//! Dotted paths, and the walk that resolves them in a document.

pub(crate) mod field_path;
mod siblings;

use std::{fmt, ops::ControlFlow, sync::Arc};

pub(crate) use siblings::order_of_siblings;

use crate::{
    Code, Error, Result,
    raw::{Doc, FieldName, Kind, SmallBytes, Value},
    work,
};

/// A parsed dotted path, such as `items.0.price`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Path(Parsed);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Parsed {
    /// A path of one name. Does not allocate if the name is short.
    Name([Part; 1]),
    /// Holds one allocation if the text and the names are short.
    Dotted { text: SmallBytes, parts: Arc<[Part]> },
}

/// The most names that a path may have, as in MongoDB.
pub(crate) const MAX_NAMES: usize = 200;

/// One name of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Part {
    name: FieldName,
    position: Option<usize>,
}

impl Part {
    /// Returns the name, prepared for repeated lookups in documents.
    pub(crate) fn field_name(&self) -> &FieldName {
        &self.name
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// Returns the name as UTF-8 bytes.
    #[inline]
    pub fn name_bytes(&self) -> &[u8] {
        self.name.as_bytes()
    }

    /// Returns the value of the field of that name; `None` if it is missing.
    #[inline]
    pub fn find<'a>(&self, doc: Doc<'a>) -> Option<Value<'a>> {
        doc.find(&self.name)
    }

    /// Compares the field of that name with `literal`; see [`Doc::holds_literal`].
    #[inline]
    pub fn holds_literal(&self, doc: Doc<'_>, literal: &[u8]) -> Option<bool> {
        doc.holds_literal(&self.name, literal)
    }

    /// Returns the name as an array position ("0", "17"; not "01"); `None` for other names.
    pub fn position(&self) -> Option<usize> {
        self.position
    }
}

impl Path {
    /// Parses a path. Empty names are allowed: they match fields with an empty name.
    ///
    /// # Errors
    /// `BadValue` (2) if the path contains a NUL byte; `Overflow` (15) if it has more than 200 names.
    pub fn parse(text: &str) -> Result<Self> {
        work::take(work::PARSED)?;
        let (mut dots, mut nuls) = (0, 0);
        for byte in text.bytes() {
            dots += usize::from(byte == b'.');
            nuls += usize::from(byte == 0);
        }
        if nuls > 0 {
            return Err(
                Error::new(Code::BAD_VALUE, "a field path must not contain a NUL byte").at(text.replace('\0', "\\0"))
            );
        }
        if dots == 0 {
            return Ok(Self(Parsed::Name([Part::new(text)])));
        }
        if dots >= MAX_NAMES {
            return Err(Error::new(Code::OVERFLOW, "a field path has at most 200 names"));
        }
        let mut parts = Vec::with_capacity(dots + 1);
        parts.extend(text.split('.').map(Part::new));
        Ok(Self(Parsed::Dotted { text: text.as_bytes().into(), parts: parts.into() }))
    }

    /// Returns the path as written.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Parsed::Name([name]) => name.name(),
            Parsed::Dotted { text, .. } => text.as_str(),
        }
    }

    /// Returns the path's names, at least one.
    #[inline]
    pub fn parts(&self) -> &[Part] {
        match &self.0 {
            Parsed::Name(name) => name,
            Parsed::Dotted { parts, .. } => parts,
        }
    }

    /// Walks `doc` along the path and calls `visit` at every end of the walk, until `visit` breaks.
    ///
    /// The walk descends into an array in the middle of the path: into each element that is a document (not into nested arrays), and into the
    /// element at the next name, if that is a position. An array at the end is passed to `visit` as a whole. At most one end has no
    /// [`PathEnd::position`].
    #[inline]
    pub fn walk<'a>(&self, doc: Doc<'a>, visit: &mut impl FnMut(PathEnd<'a>) -> ControlFlow<()>) -> ControlFlow<()> {
        walk(self.parts(), doc, None, visit)
    }

    /// Walks like [`walk`](Self::walk), starting from the value `first` of the path's first name.
    #[inline]
    pub fn walk_from<'a>(
        &self,
        first: Option<Value<'a>>,
        visit: &mut impl FnMut(PathEnd<'a>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match first {
            None => visit(PathEnd::missing(None)),
            Some(value) => below(self.parts().get(1..).unwrap_or_default(), value, None, visit),
        }
    }

    /// Returns whether one of the path's names is an array position. Indexes and filters treat such paths differently.
    pub fn has_position(&self) -> bool {
        self.parts().iter().any(|part| part.position.is_some())
    }

    /// Returns the value at the path, if no array is in the middle and no field is missing.
    #[inline]
    pub fn get<'a>(&self, doc: Doc<'a>) -> Option<Value<'a>> {
        let (last, parents) = self.parts().split_last()?;
        let mut doc = doc;
        for part in parents {
            doc = part.find(doc)?.as_document()?;
        }
        last.find(doc)
    }
}

impl Part {
    fn new(name: &str) -> Self {
        let canonical = name == "0" || (!name.starts_with('0') && name.bytes().all(|byte| byte.is_ascii_digit()));
        Self { name: FieldName::new(name), position: canonical.then(|| name.parse().ok()).flatten() }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The end of a walk along a path.
#[derive(Clone, Copy, Debug)]
pub struct PathEnd<'a> {
    /// The result at the end of the walk.
    pub found: Found<'a>,
    /// The position in the outermost array whose elements were traversed. A position that is part of the path does not
    /// count.
    pub position: Option<usize>,
    /// How the last step of the walk was made.
    pub step: Step,
}

/// The last step of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The last step was by field name. If it found an array, a filter is also evaluated on the elements.
    Name,
    /// The last step was by an array position in the path. If it found an array, a filter is evaluated on it only as a
    /// whole.
    Position,
}

impl<'a> PathEnd<'a> {
    fn value(value: Value<'a>, position: Option<usize>, step: Step) -> Self {
        Self { found: Found::Value(value), position, step }
    }

    fn missing(position: Option<usize>) -> Self {
        Self { found: Found::Missing, position, step: Step::Name }
    }

    fn blocked(position: Option<usize>) -> Self {
        Self { found: Found::Blocked, position, step: Step::Name }
    }
}

/// What a walk found at its end.
#[derive(Clone, Copy, Debug)]
pub enum Found<'a> {
    /// The value at the path.
    Value(Value<'a>),
    /// The field is missing in its document, or there is a scalar in place of that document.
    Missing,
    /// An array in the middle of the path is empty, or one of its elements is not a document. A filter sees nothing
    /// here, an index and a sort see a missing field.
    Blocked,
}

fn walk<'a>(
    parts: &[Part],
    doc: Doc<'a>,
    position: Option<usize>,
    visit: &mut impl FnMut(PathEnd<'a>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let Some((part, rest)) = parts.split_first() else { return ControlFlow::Continue(()) };
    match part.find(doc) {
        None => visit(PathEnd::missing(position)),
        Some(value) => below(rest, value, position, visit),
    }
}

/// Continues from a value with the remaining names.
fn below<'a>(
    rest: &[Part],
    value: Value<'a>,
    position: Option<usize>,
    visit: &mut impl FnMut(PathEnd<'a>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    if rest.is_empty() {
        return visit(PathEnd::value(value, position, Step::Name));
    }
    match value.as_container() {
        None => visit(PathEnd::missing(position)),
        Some(doc) if value.kind() == Kind::Document => walk(rest, doc, position, visit),
        Some(array) => through(rest, array, position, visit),
    }
}

/// Continues through an array's elements with the remaining names, of which there is at least one.
fn through<'a>(
    rest: &[Part],
    array: Doc<'a>,
    position: Option<usize>,
    visit: &mut impl FnMut(PathEnd<'a>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let Some((next, after)) = rest.split_first() else { return ControlFlow::Continue(()) };
    if !work::spend(work::of_bytes(array.bytes().len())) {
        return ControlFlow::Continue(());
    }
    let mut empty = true;
    for (index, element) in array.values().enumerate() {
        empty = false;
        let document = element.as_document();
        if let Some(document) = document {
            walk(rest, document, position.or(Some(index)), visit)?;
        }
        if next.position == Some(index) {
            if after.is_empty() {
                visit(PathEnd::value(element, position, Step::Position))?;
            } else if let Some(document) = document {
                walk(after, document, position, visit)?;
            } else if let Some(nested) = element.as_array() {
                through(after, nested, position, visit)?;
            } else {
                visit(PathEnd::blocked(position))?;
            }
        } else if document.is_none() {
            visit(PathEnd::blocked(position.or(Some(index))))?;
        }
    }
    if empty { visit(PathEnd::blocked(position)) } else { ControlFlow::Continue(()) }
}
