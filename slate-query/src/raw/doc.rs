use std::{fmt, ops::Range};

use super::{
    Kind, Value,
    bytes::{below, common_start, same},
    kind::measure,
    name::FieldName,
    stored::{FieldTable, Names, mark},
};
use crate::work;

/// A borrowed document or array: all of its bytes, including length and terminator.
#[derive(Clone, Copy)]
pub struct Doc<'a> {
    bytes: &'a [u8],
    /// The offsets of the fields; empty if unknown, in which case fields are found by scanning.
    table: FieldTable<'a>,
}

impl Doc<'static> {
    /// A document without fields, or an array without elements.
    pub const EMPTY: Self = Self { bytes: &[5, 0, 0, 0, 0], table: FieldTable::NONE };
}

impl<'a> Doc<'a> {
    /// Wraps the bytes of a document without checking them. If they are damaged, iteration ends early.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, table: FieldTable::NONE }
    }

    /// Reads a document in the stored form; see [`store`](super::store).
    #[inline]
    pub fn stored(bytes: &'a [u8]) -> Self {
        let (table, bytes) = FieldTable::split(bytes);
        Self { bytes, table }
    }

    /// Appends the document in the stored form to `out`, with the field table that it has, if any.
    pub fn append_stored(self, out: &mut Vec<u8>) {
        self.table.append_to(out);
        out.extend_from_slice(self.bytes);
    }

    /// Returns the document's bytes.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// Returns whether the document has a field table, so that a field is found without scanning those before it.
    #[inline]
    pub fn has_table(self) -> bool {
        !self.table.is_empty()
    }

    /// Returns the hash byte and the offset that the field table has for the field with this number; `None` if it has no such field.
    #[inline]
    pub(crate) fn entry(self, number: usize) -> Option<(u8, usize)> {
        self.table.entry(number)
    }

    /// Returns whether the document has no elements.
    pub fn is_empty(self) -> bool {
        self.elements().next().is_none()
    }

    /// Returns the document's elements, in order.
    #[inline]
    pub fn elements(self) -> Elements<'a> {
        Elements { rest: self.bytes.get(4..).unwrap_or_default() }
    }

    /// Returns the elements of both documents without the equal ones at their start.
    pub(crate) fn elements_from_difference(self, other: Self) -> (Elements<'a>, Elements<'a>) {
        let (mut elements, mut others) = (self.elements(), other.elements());
        if self.has_table() {
            // The fields that begin before the first difference are at the same offsets, and all but the last of them are equal.
            let difference = 4 + common_start(elements.rest, others.rest);
            let start = self.table.last_start(difference).unwrap_or(4);
            elements.rest = self.bytes.get(start..).unwrap_or_default();
            others.rest = other.bytes.get(start..).unwrap_or_default();
            work::spend(work::of_bytes(start));
        } else {
            elements.skip_common(&mut others);
        }
        (elements, others)
    }

    /// Returns the value of the document's first field, if that field has this name.
    #[inline]
    pub fn first(self, name: &str) -> Option<Value<'a>> {
        named(self.bytes.get(4..)?, name.as_bytes())
    }

    /// Returns the fields that have one of these names, in the document's order, including repeated fields.
    #[inline]
    pub fn fields_of<'n>(self, names: &'n Names) -> impl Iterator<Item = Located<'a>> + use<'a, 'n> {
        let at_places =
            self.table.spans(names, self.end()).filter_map(move |(mark, span)| self.located_in(span, mark, names));
        // Without a table every field is checked.
        let is_walked = !self.has_table() && work::spend(work::of_bytes(self.bytes.len()));
        let mut next = if is_walked { 4 } else { self.bytes.len() };
        let walked = std::iter::from_fn(move || {
            loop {
                let place = next;
                let (field, rest) = split(self.bytes.get(place..)?)?;
                next = self.bytes.len() - rest.len();
                let mark = mark(field.name);
                if let Some(found) = names.has_mark(mark).then(|| self.located(place, mark, names)).flatten() {
                    return Some(found);
                }
            }
        });
        at_places.chain(walked)
    }

    /// Like [`fields_of`](Self::fields_of), but only for a document with a field table: returns each field's mark and bytes (type,
    /// name and value) without decoding the value.
    #[inline]
    pub(crate) fn tabulated_fields_of<'n>(
        self,
        names: &'n Names,
    ) -> impl Iterator<Item = (u8, &'a [u8])> + use<'a, 'n> {
        let spans = self.table.spans(names, self.end());
        let fields = spans.filter_map(move |(mark, span)| Some((mark, self.bytes.get(span)?)));
        fields.filter(|(mark, field)| names.is_name_of(*mark, field))
    }

    /// Returns the offset of the document's terminator.
    #[inline]
    fn end(self) -> usize {
        self.bytes.len().saturating_sub(1)
    }

    /// Returns the field in the bytes at `span`, if it has one of the names.
    #[inline(always)]
    fn located_in(self, span: Range<usize>, mark: u8, names: &Names) -> Option<Located<'a>> {
        let field = self.bytes.get(span.clone())?;
        if names.are_many() {
            return self.located(span.start, mark, names);
        }
        names.of_mark(mark).find_map(|(number, name)| {
            let value = value_of_field(field, name)?;
            Some(Located { number, mark, value, place: span.clone() })
        })
    }

    /// Returns the field at that offset, if it has one of the names. Always inlined: the result is too large for
    /// registers, and returning it through memory stalls the processor.
    #[inline(always)]
    fn located(self, place: usize, mark: u8, names: &Names) -> Option<Located<'a>> {
        let rest = self.bytes.get(place..)?;
        if names.are_many() {
            return self.located_among_many(place, mark, names);
        }
        names.of_mark(mark).find_map(|(number, name)| {
            let value = named(rest, name)?;
            let end = place + 2 + name.len() + value.bytes().len();
            Some(Located { number, mark, value, place: place..end })
        })
    }

    #[inline(never)]
    fn located_among_many(self, place: usize, mark: u8, names: &Names) -> Option<Located<'a>> {
        let (field, rest) = split(self.bytes.get(place..)?)?;
        let number = names.number_of(mark, field.name)?;
        let value = Value::new(Kind::from_byte(field.byte)?, field.value);
        Some(Located { number, mark, value, place: place..self.bytes.len() - rest.len() })
    }

    /// Returns whether the field at offset `place` has this name.
    pub(super) fn is_named(self, place: usize, name: &[u8]) -> bool {
        self.bytes.get(place..).and_then(|rest| named(rest, name)).is_some()
    }

    /// Returns the values of the elements, in order.
    #[inline]
    pub fn values(self) -> impl Iterator<Item = Value<'a>> {
        self.elements().map(|element| element.value)
    }

    /// Like [`get`](Self::get), but remembers the field's position in the table, if there is one, for the next document.
    #[inline]
    pub fn find(self, name: &FieldName) -> Option<Value<'a>> {
        // The names in a table are unique, so any match is the first.
        if let Some((mark, span)) = self.table.marked_span(name.number(), self.end())
            && mark == name.mark()
            && let Some(value) = value_of_field(self.bytes.get(span)?, name.as_bytes())
        {
            return Some(value);
        }
        self.search(name)
    }

    /// Returns whether the field consists of exactly the bytes `literal` (type, name and value). `None` if there is no
    /// field table, or the field is not where the last document had it, or has another type.
    #[inline]
    pub fn holds_literal(self, name: &FieldName, literal: &[u8]) -> Option<bool> {
        let (mark, place) = self.table.entry(name.number())?;
        let rest = self.bytes.get(place..).filter(|_| mark == name.mark())?;
        if rest.get(..literal.len()).is_some_and(|field| same(field, literal)) {
            return Some(true);
        }
        let head = 2 + name.as_bytes().len();
        let is_of_type = same(rest.get(..head)?, literal.get(..head)?);
        is_of_type.then_some(false)
    }

    fn search(self, name: &FieldName) -> Option<Value<'a>> {
        let wanted = name.as_bytes();
        if !self.has_table() {
            return self.scan(wanted);
        }
        let (number, value) = self.table.spans_of(name.mark(), self.end()).find_map(|(number, span)| {
            let value = value_of_field(self.bytes.get(span)?, wanted)?;
            Some((number, value))
        })?;
        name.found(number);
        Some(value)
    }

    /// Returns whether the document can contain a value of that type at any depth. Searches for the type byte without
    /// parsing, so `true` may be wrong.
    pub fn may_hold(self, kind: Kind) -> bool {
        self.bytes.contains(&kind.byte())
    }

    /// Returns the value of the first field of that name; `None` if it is missing.
    #[inline]
    pub fn get(self, name: &str) -> Option<Value<'a>> {
        let name = name.as_bytes();
        if self.has_table() {
            let mut spans = self.table.spans_of(mark(name), self.end());
            return spans.find_map(|(_, span)| value_of_field(self.bytes.get(span)?, name));
        }
        self.scan(name)
    }

    /// Returns the range of the bytes of the first field of that name, if there is one: type, name and value.
    pub(crate) fn place_of(self, name: &[u8]) -> Option<Range<usize>> {
        if self.has_table() {
            let mut spans = self.table.spans_of(mark(name), self.end()).map(|(_, span)| span);
            return spans.find(|span| self.is_named(span.start, name));
        }
        let mut place = 4;
        self.elements().find_map(|element| {
            let start = place;
            place += element.size();
            (element.name == name).then_some(start..place)
        })
    }

    /// Scans the fields for the first of that name. `None` also if the call ended early.
    #[inline]
    fn scan(self, name: &[u8]) -> Option<Value<'a>> {
        if work::is_over() {
            return None;
        }
        let (mut rest, mut passed) = (self.bytes.get(4..)?, 0);
        let found = loop {
            // No name contains a NUL, so a field whose name begins with this one and a NUL has this name.
            if let Some(value) = named(rest, name) {
                break Some(value);
            }
            match split(rest) {
                Some((_, behind)) => rest = behind,
                None => break None,
            }
            passed += 1;
        };
        // Values are passed over by their length.
        work::spend(passed / 2);
        found
    }
}

impl<'a> From<&'a bson::RawDocument> for Doc<'a> {
    fn from(document: &'a bson::RawDocument) -> Self {
        Self::new(document.as_bytes())
    }
}

impl<'a> From<&'a bson::RawDocumentBuf> for Doc<'a> {
    fn from(document: &'a bson::RawDocumentBuf) -> Self {
        Self::new(document.as_bytes())
    }
}

impl PartialEq for Doc<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for Doc<'_> {}

impl fmt::Debug for Doc<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Value::new(Kind::Document, self.bytes).fmt(f)
    }
}

/// A field of a document, or an element of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element<'a> {
    /// The field's name, as UTF-8 bytes; in an array, its position in decimal.
    pub name: &'a [u8],
    /// The element's value.
    pub value: Value<'a>,
}

impl Element<'_> {
    /// Returns the field's size in the document in bytes: type, name and value.
    #[inline]
    pub fn size(&self) -> usize {
        2 + self.name.len() + self.value.bytes().len()
    }

    /// Returns the name as text, for messages.
    pub fn display_name(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(self.name)
    }
}

/// A field found by [`Doc::fields_of`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located<'a> {
    /// The number of its name among the names searched for.
    pub number: usize,
    /// The hash byte of its name in field tables.
    pub(super) mark: u8,
    /// The field's value.
    pub value: Value<'a>,
    /// The range of the field's bytes in the document: type, name and value.
    pub place: Range<usize>,
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

impl Elements<'_> {
    /// Passes over the equal elements at the start of both.
    pub(crate) fn skip_common(&mut self, other: &mut Self) {
        let mut common = common_start(self.rest, other.rest);
        if common == self.rest.len() && common == other.rest.len() {
            (self.rest, other.rest) = (&[], &[]);
            work::spend(work::of_bytes(common));
            return;
        }
        while let Some((_, rest)) = split(self.rest) {
            let size = self.rest.len() - rest.len();
            let Some(left) = common.checked_sub(size) else { break };
            (self.rest, common) = (rest, left);
            other.rest = other.rest.get(size..).unwrap_or_default();
        }
    }
}

/// A field with an undecoded type byte.
struct RawField<'a> {
    byte: u8,
    name: &'a [u8],
    value: &'a [u8],
}

/// Splits off the field at the start of `rest`; `None` if there is none.
#[inline]
fn split(rest: &[u8]) -> Option<(RawField<'_>, &[u8])> {
    work::did(1);
    let (&byte, rest) = rest.split_first()?;
    let (name, rest) = rest.split_at_checked(terminator(rest)?.at)?;
    let (_, rest) = rest.split_first()?;
    let (value, rest) = rest.split_at_checked(measure(byte, rest)?)?;
    Some((RawField { byte, name, value }, rest))
}

/// Returns the value of the field that consists of exactly these bytes, if it has this name. Cheaper than [`named`], which
/// measures the value.
#[inline]
fn value_of_field<'a>(field: &'a [u8], name: &[u8]) -> Option<Value<'a>> {
    let (&byte, rest) = field.split_first()?;
    let (front, rest) = rest.split_at_checked(name.len())?;
    let (&terminator, value) = rest.split_first()?;
    if terminator != 0 || !same(front, name) {
        return None;
    }
    Some(Value::new(Kind::from_byte(byte)?, value))
}

/// Returns the value of the field at the start of `rest`, if it has this name.
#[inline]
fn named<'a>(rest: &'a [u8], name: &[u8]) -> Option<Value<'a>> {
    let (&byte, rest) = rest.split_first()?;
    let (front, rest) = rest.split_at_checked(name.len())?;
    let (&terminator, rest) = rest.split_first()?;
    if terminator != 0 || !same(front, name) {
        return None;
    }
    Some(Value::new(Kind::from_byte(byte)?, rest.get(..measure(byte, rest)?)?))
}

/// The position of the first NUL.
pub(crate) struct Terminator {
    pub(crate) at: usize,
    /// Whether the bytes before it are ASCII.
    pub(crate) is_ascii: bool,
}

/// Finds the first NUL, eight bytes at a time: names are too short for a call to `memchr` to pay off.
#[inline(always)]
pub(crate) fn terminator(bytes: &[u8]) -> Option<Terminator> {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let (words, tail) = bytes.as_chunks();
    let mut before = 0;
    for (at, word) in words.iter().enumerate() {
        let zeros = below(*word, 1);
        let word = u64::from_le_bytes(*word);
        if zeros != 0 {
            // The bits of this word before the NUL.
            before |= word & (zeros & zeros.wrapping_neg()).wrapping_sub(1);
            let at = at * size_of::<u64>() + (zeros.trailing_zeros() / u8::BITS) as usize;
            return Some(Terminator { at, is_ascii: before & HIGH == 0 });
        }
        before |= word;
    }
    let place = tail.iter().position(|&byte| byte == 0)?;
    let is_ascii = before & HIGH == 0 && tail.iter().take(place).all(u8::is_ascii);
    Some(Terminator { at: bytes.len() - tail.len() + place, is_ascii })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_ends_at_the_first_nul_and_is_ascii_before_it() {
        for length in 0..24 {
            for high in 0..length + 3 {
                let mut bytes = vec![b'a'; length];
                bytes.extend([0, b'b', b'c', 0, 0]);
                if high != length {
                    bytes[high] = 0xc3;
                }
                let found = terminator(&bytes).unwrap();
                assert_eq!((found.at, found.is_ascii), (length, high >= length), "{length} bytes, {high}");
            }
            assert!(terminator(&vec![b'a'; length]).is_none());
        }
    }
}
