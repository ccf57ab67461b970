use std::fmt;

use super::{Kind, Value};

/// A borrowed document or array: its whole bytes, length and terminator included.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Doc<'a>(&'a [u8]);

impl<'a> Doc<'a> {
    /// The document that `bytes` hold. They are not checked: where they are damaged, elements end early.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The document's bytes.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// Whether it has no elements.
    pub fn is_empty(self) -> bool {
        self.elements().next().is_none()
    }

    /// Its elements, in order.
    #[inline]
    pub fn elements(self) -> Elements<'a> {
        Elements { rest: self.0.get(4..).unwrap_or_default() }
    }

    /// Its values, in order: an array's elements.
    #[inline]
    pub fn values(self) -> impl Iterator<Item = Value<'a>> {
        self.elements().map(|element| element.value)
    }

    /// The first field of that name: of duplicates the first wins.
    #[inline]
    pub fn get(self, name: &str) -> Option<Value<'a>> {
        let name = name.as_bytes();
        let mut rest = self.0.get(4..)?;
        loop {
            let (&byte, named) = rest.split_first()?;
            let kind = Kind::from_byte(byte)?;
            // The name is compared before its end is looked for: most fields passed over differ in their first bytes,
            // and the one that is sought needs no search.
            let (sought, value) = match named.split_at_checked(name.len()) {
                Some((head, [0, value @ ..])) if head == name => (true, value),
                _ => (false, named.get(named.iter().position(|&byte| byte == 0)? + 1..)?),
            };
            let (value, after) = value.split_at_checked(Value::measure(kind, value)?)?;
            if sought {
                return Some(Value::new(kind, value));
            }
            rest = after;
        }
    }
}

impl<'a> From<&'a bson::RawDocument> for Doc<'a> {
    fn from(document: &'a bson::RawDocument) -> Self {
        Self(document.as_bytes())
    }
}

impl<'a> From<&'a bson::RawDocumentBuf> for Doc<'a> {
    fn from(document: &'a bson::RawDocumentBuf) -> Self {
        Self(document.as_bytes())
    }
}

impl fmt::Debug for Doc<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Value::new(Kind::Document, self.0).fmt(f)
    }
}

/// A field of a document, or an element of an array.
#[derive(Clone, Copy, Debug)]
pub struct Element<'a> {
    /// The field's name, as UTF-8 bytes; in an array, its position in decimal.
    pub name: &'a [u8],
    /// Its value.
    pub value: Value<'a>,
}

impl Element<'_> {
    /// The name as text, for messages.
    pub fn display_name(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(self.name)
    }
}

/// The elements of a document, in order.
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Elements<'a> {
    type Item = Element<'a>;

    #[inline]
    fn next(&mut self) -> Option<Element<'a>> {
        let (&byte, rest) = self.rest.split_first()?;
        let kind = Kind::from_byte(byte)?;
        let end = rest.iter().position(|&byte| byte == 0)?;
        let (name, rest) = rest.split_at_checked(end)?;
        let (value, rest) = rest.get(1..)?.split_at_checked(Value::measure(kind, rest.get(1..)?)?)?;
        self.rest = rest;
        Some(Element { name, value: Value::new(kind, value) })
    }
}
