use serde::de::{DeserializeSeed, MapAccess, value::BorrowedStrDeserializer};

use super::{Context, Deserializer, Error, Result, access::no_value, type_of, utf8};
use crate::raw::{Doc, Kind, Marks, Value, mark, same, terminator};

/// The fields of a document as a map for a target that names its fields.
///
/// Where the document has a field table, fields that are not named are passed without looking at their bytes. The first
/// of them is presented nevertheless: a type that denies unknown fields fails. If the target ignores it, it ignores the
/// others, too.
#[derive(Debug)]
pub(super) struct KnownFields<'de> {
    document: Doc<'de>,
    /// The number of the next field, where the document has a field table.
    number: usize,
    /// Where the next field begins, where it has none.
    place: usize,
    names: Names,
    unknown: Unknown,
    /// The field whose value is next.
    current: Option<Field<'de>>,
    context: Context,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unknown {
    Presented,
    Skipped,
}

#[derive(Clone, Copy, Debug)]
struct Field<'de> {
    name: &'de str,
    value: Value<'de>,
    is_known: bool,
}

impl<'de> KnownFields<'de> {
    #[inline]
    pub(super) fn new(document: Doc<'de>, names: &'static [&'static str], context: Context) -> Self {
        let names = Names { names, next: 0, marks: None };
        Self { document, number: 0, place: 4, names, unknown: Unknown::Presented, current: None, context }
    }

    #[inline]
    fn next_field(&mut self) -> Result<Option<Field<'de>>> {
        if self.document.has_table() { self.next_in_table() } else { self.next_in_bytes() }
    }

    /// Reads the next field at its offset in the field table. It ends where the next begins.
    #[inline]
    fn next_in_table(&mut self) -> Result<Option<Field<'de>>> {
        let bytes = self.document.bytes();
        while let Some((mark, place)) = self.document.entry(self.number) {
            self.number += 1;
            let end = self.document.entry(self.number).map_or(bytes.len().saturating_sub(1), |(_, place)| place);
            let (&kind, rest) = bytes.get(place..end).and_then(<[u8]>::split_first).ok_or_else(Error::damaged)?;
            let known = self.names.find(rest, Some(mark));
            if known.is_none() && self.unknown == Unknown::Skipped {
                continue;
            }
            let length = known.map_or_else(|| name_length(rest), |name| Ok(name.len()))?;
            let value = rest.get(length + 1..).ok_or_else(Error::damaged)?;
            return field(known, kind, rest, length, value).map(Some);
        }
        Ok(None)
    }

    /// Reads the next field where the last one ended.
    #[inline]
    fn next_in_bytes(&mut self) -> Result<Option<Field<'de>>> {
        let bytes = self.document.bytes();
        loop {
            let rest = bytes.get(self.place..bytes.len().saturating_sub(1)).unwrap_or_default();
            let Some((&kind, rest)) = rest.split_first() else { return Ok(None) };
            let known = self.names.find(rest, None);
            let length = known.map_or_else(|| name_length(rest), |name| Ok(name.len()))?;
            let value = rest.get(length + 1..).ok_or_else(Error::damaged)?;
            let size = Kind::from_byte(kind).and_then(|kind| Value::measure(kind, value)).ok_or_else(Error::damaged)?;
            self.place += 2 + length + size;
            if known.is_some() || self.unknown == Unknown::Presented {
                return field(known, kind, rest, length, value.get(..size).unwrap_or_default()).map(Some);
            }
        }
    }
}

#[inline]
fn field<'de>(
    known: Option<&'static str>,
    kind: u8,
    rest: &'de [u8],
    length: usize,
    value: &'de [u8],
) -> Result<Field<'de>> {
    let kind = Kind::from_byte(kind).ok_or_else(Error::damaged)?;
    let name = match known {
        Some(name) => name,
        None => rest.get(..length).and_then(utf8).ok_or_else(Error::damaged)?,
    };
    Ok(Field { name, value: Value::new(kind, value), is_known: known.is_some() })
}

/// The length of the name at the start of `rest`.
#[inline]
fn name_length(rest: &[u8]) -> Result<usize> {
    terminator(rest).map(|terminator| terminator.at).ok_or_else(Error::damaged)
}

impl<'de> MapAccess<'de> for KnownFields<'de> {
    type Error = Error;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        self.current = self.next_field()?;
        match &self.current {
            Some(field) => seed.deserialize(BorrowedStrDeserializer::new(field.name)).map(Some),
            None => Ok(None),
        }
    }

    #[inline]
    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value> {
        let field = self.current.ok_or_else(no_value)?;
        if !field.is_known && type_of::is_ignored::<S::Value>() {
            self.unknown = Unknown::Skipped;
        }
        let value = Deserializer::new(field.value, self.context);
        seed.deserialize(value).map_err(|error: Error| error.within(field.name))
    }
}

/// The names of a target's fields.
#[derive(Debug)]
struct Names {
    names: &'static [&'static str],
    /// The index of the name that is expected next: most documents have the fields in the same order as the target.
    next: usize,
    /// The marks of all names, once a field had another name than the expected one.
    marks: Option<Marks>,
}

impl Names {
    /// The name with which `rest` begins. `mark` is the mark of that name, if it is known.
    #[inline]
    fn find(&mut self, rest: &[u8], mark: Option<u8>) -> Option<&'static str> {
        if let Some(name) = self.names.get(self.next)
            && begins_with(rest, name)
        {
            self.next += 1;
            return Some(name);
        }
        self.search(rest, mark)
    }

    #[inline]
    fn search(&mut self, rest: &[u8], wanted: Option<u8>) -> Option<&'static str> {
        if let Some(wanted) = wanted {
            let names = self.names;
            let marks = self.marks.get_or_insert_with(|| names.iter().map(|name| mark(name.as_bytes())).collect());
            if !marks.has(wanted) {
                return None;
            }
        }
        let at = self.names.iter().position(|name| begins_with(rest, name))?;
        self.next = at + 1;
        self.names.get(at).copied()
    }
}

#[inline]
fn begins_with(rest: &[u8], name: &str) -> bool {
    rest.get(name.len()) == Some(&0) && rest.get(..name.len()).is_some_and(|front| same(front, name.as_bytes()))
}
