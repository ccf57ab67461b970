//! Dotted paths, and the one walker that resolves them in a document.

use std::{fmt, ops::ControlFlow};

use crate::{
    Code, Error, Result,
    raw::{Doc, Kind, Value},
};

/// A parsed dotted path, such as `items.0.price`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path {
    text: Box<str>,
    parts: Box<[Part]>,
}

/// One name of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Part {
    name: Box<str>,
    position: Option<usize>,
}

impl Part {
    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The array position that the name spells, where it spells one ("0", "17"; not "01").
    pub fn position(&self) -> Option<usize> {
        self.position
    }
}

impl Path {
    /// Splits a path at its dots. Empty names are kept: a filter may name them, and matches fields so named.
    ///
    /// # Errors
    /// `BadValue` (2) where the path holds a NUL byte; `Overflow` (15) where it has more than 200 names.
    pub fn parse(text: &str) -> Result<Self> {
        if text.contains('\0') {
            return Err(Error::new(Code::BAD_VALUE, "a field path holds no NUL byte").at(text.replace('\0', "\\0")));
        }
        let parts: Box<[Part]> = text.split('.').map(Part::new).collect();
        if parts.len() > 200 {
            return Err(Error::new(Code::OVERFLOW, "a field path has at most 200 names"));
        }
        Ok(Self { text: text.into(), parts })
    }

    /// The path as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Its names; at least one.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Walks `doc` along the path and hands every place where it ends to `visit`, until that breaks.
    ///
    /// An array in the middle is descended into, element by element (documents within arrays, not arrays within
    /// arrays), and by position where the next name spells one. An array at the end is handed over whole: whoever asks
    /// about its elements goes through them. Exactly one end is reached outside arrays.
    #[inline]
    pub fn walk<'a>(
        &self,
        doc: Doc<'a>,
        visit: &mut impl FnMut(End<'a>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        walk(&self.parts, doc, None, visit)
    }

    /// The value at the path where no array stands in the middle; `None` where it is missing.
    #[inline]
    pub fn get<'a>(&self, doc: Doc<'a>) -> Option<Value<'a>> {
        let (last, parents) = self.parts.split_last()?;
        let mut doc = doc;
        for part in parents {
            doc = doc.get(&part.name)?.as_document()?;
        }
        doc.get(&last.name)
    }
}

impl Part {
    fn new(name: &str) -> Self {
        let canonical = name == "0" || (!name.starts_with('0') && name.bytes().all(|byte| byte.is_ascii_digit()));
        Self { name: name.into(), position: canonical.then(|| name.parse().ok()).flatten() }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A place where a walk along a path ended.
#[derive(Clone, Copy, Debug)]
pub struct End<'a> {
    /// What stands there.
    pub found: Found<'a>,
    /// The position within the outermost array passed on the way, where one was passed.
    pub position: Option<usize>,
}

/// What a walk found at its end.
#[derive(Clone, Copy, Debug)]
pub enum Found<'a> {
    /// The path's value.
    Value(Value<'a>),
    /// The field is missing from the document that should hold it, or a scalar stands where that document should.
    Missing,
    /// An array in the middle of the path holds an element that is no document, or nothing at all: a filter sees
    /// nothing here, an index and a sort see a missing field.
    Blocked,
}

fn walk<'a>(
    parts: &[Part],
    doc: Doc<'a>,
    position: Option<usize>,
    visit: &mut impl FnMut(End<'a>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let Some((part, rest)) = parts.split_first() else { return ControlFlow::Continue(()) };
    match doc.get(&part.name) {
        None => visit(End { found: Found::Missing, position }),
        Some(value) => below(rest, value, position, visit),
    }
}

/// Goes on from a value with the names that are left.
fn below<'a>(
    rest: &[Part],
    value: Value<'a>,
    position: Option<usize>,
    visit: &mut impl FnMut(End<'a>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let Some((next, after)) = rest.split_first() else { return visit(End { found: Found::Value(value), position }) };
    match value.kind() {
        Kind::Document => walk(rest, Doc::new(value.bytes()), position, visit),
        Kind::Array => {
            let mut elements = 0;
            for (index, element) in Doc::new(value.bytes()).values().enumerate() {
                elements += 1;
                let position = position.or(Some(index));
                if next.position == Some(index) {
                    below(after, element, position, visit)?;
                }
                match element.as_document() {
                    Some(document) => walk(rest, document, position, visit)?,
                    None if next.position == Some(index) => {}
                    None => visit(End { found: Found::Blocked, position })?,
                }
            }
            if elements == 0 { visit(End { found: Found::Blocked, position }) } else { ControlFlow::Continue(()) }
        }
        _ => visit(End { found: Found::Missing, position }),
    }
}
