use std::fmt;

use super::{Kind, Value, kind::measure};

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
            let (field, after) = split(rest)?;
            // Lengths are compared first: most names that are passed over differ in theirs.
            if field.name.len() == name.len() && field.name == name {
                return Some(Value::new(Kind::from_byte(field.byte)?, field.value));
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
        let (field, rest) = split(self.rest)?;
        self.rest = rest;
        Some(Element { name: field.name, value: Value::new(Kind::from_byte(field.byte)?, field.value) })
    }
}

/// A field whose type is still a byte.
struct RawField<'a> {
    byte: u8,
    name: &'a [u8],
    value: &'a [u8],
}

/// The field at the front of a document's bytes, and what is behind it.
#[inline]
fn split(rest: &[u8]) -> Option<(RawField<'_>, &[u8])> {
    let (&byte, rest) = rest.split_first()?;
    let (name, rest) = rest.split_at_checked(terminator(rest)?)?;
    let (_, rest) = rest.split_first()?;
    let (value, rest) = rest.split_at_checked(measure(byte, rest)?)?;
    Some((RawField { byte, name, value }, rest))
}

/// Where the first NUL stands. Eight bytes at a time: names are short, and a call to search them costs more than that.
#[inline]
fn terminator(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let (words, tail) = bytes.as_chunks();
    for (at, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        // The lowest bit that stands is that of the first byte that is zero (Warren, Hacker's Delight, 6-1).
        let zeros = word.wrapping_sub(ONES) & !word & (ONES << 7);
        if zeros != 0 {
            return Some(at * size_of::<u64>() + (zeros.trailing_zeros() / u8::BITS) as usize);
        }
    }
    tail.iter().position(|&byte| byte == 0).map(|place| bytes.len() - tail.len() + place)
}
