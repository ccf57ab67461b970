use serde::de::{DeserializeSeed, MapAccess, value::BorrowedStrDeserializer};

use super::{Context, Deserializer, Error, Result, access::no_value, type_of, utf8};
use crate::raw::{Doc, Kind, Marks, Value, mark, same, terminator};

/// The fields of a document as a map for a target that names its fields.
///
/// Where the document has a field table, fields that are not named are passed without looking at their bytes. The first
/// of these fields is presented nevertheless, so that a type that denies unknown fields fails. A target that ignores this field
/// ignores the others, too.
#[derive(Debug)]
pub(super) struct KnownFields<'de> {
    document: Doc<'de>,
    /// The number of the next field, if the document has a field table.
    number: usize,
    /// The offset of the next field, if the document has no field table.
    place: usize,
    names: Names,
    unknown: Unknown,
    /// The name of the current field; `None` before the first one, and if it is damaged.
    name: Option<&'de str>,
    is_known: bool,
    value: Value<'de>,
    context: Context,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unknown {
    Presented,
    Skipped,
}

impl<'de> KnownFields<'de> {
    #[inline]
    pub(super) fn new(document: Doc<'de>, names: &'static [&'static str], context: Context) -> Self {
        let names = Names { names, next: 0, missing: names.len(), marks: None };
        let (name, value) = (None, Value::UNDEFINED);
        Self {
            document,
            number: 0,
            place: 4,
            names,
            unknown: Unknown::Presented,
            name,
            is_known: false,
            value,
            context,
        }
    }

    /// Moves to the next field. Returns `false` after the last.
    #[inline(always)]
    fn advance(&mut self) -> Result<bool> {
        if self.document.has_table() { self.advance_in_table() } else { self.advance_in_bytes() }
    }

    /// Reads the next field at its offset in the field table. It ends where the next begins.
    #[inline(always)]
    fn advance_in_table(&mut self) -> Result<bool> {
        let bytes = self.document.bytes();
        while let Some((mark, place)) = self.document.entry(self.number) {
            // Names in a table are unique.
            if self.names.missing == 0 && self.unknown == Unknown::Skipped {
                break;
            }
            self.number += 1;
            let end = self.document.entry(self.number).map_or(bytes.len().saturating_sub(1), |(_, place)| place);
            let (&kind, rest) = bytes.get(place..end).and_then(<[u8]>::split_first).ok_or_else(Error::damaged)?;
            let known = self.names.find(rest, Some(mark));
            if known.is_none() && self.unknown == Unknown::Skipped {
                continue;
            }
            let length = known.map_or_else(|| name_length(rest), |name| Ok(name.len()))?;
            let value = rest.get(length + 1..).ok_or_else(Error::damaged)?;
            return self.move_to(known, rest.get(..length), kind, value);
        }
        Ok(false)
    }

    /// Reads the next field where the last one ended.
    #[inline(always)]
    fn advance_in_bytes(&mut self) -> Result<bool> {
        let bytes = self.document.bytes();
        loop {
            let rest = bytes.get(self.place..bytes.len().saturating_sub(1)).unwrap_or_default();
            let Some((&kind, rest)) = rest.split_first() else { return Ok(false) };
            let known = self.names.find(rest, None);
            let length = known.map_or_else(|| name_length(rest), |name| Ok(name.len()))?;
            let value = rest.get(length + 1..).ok_or_else(Error::damaged)?;
            let size = Kind::from_byte(kind).and_then(|kind| Value::measure(kind, value)).ok_or_else(Error::damaged)?;
            self.place += 2 + length + size;
            if known.is_some() || self.unknown == Unknown::Presented {
                return self.move_to(known, rest.get(..length), kind, value.get(..size).unwrap_or_default());
            }
        }
    }

    #[inline(always)]
    fn move_to(
        &mut self,
        known: Option<&'static str>,
        name: Option<&'de [u8]>,
        kind: u8,
        value: &'de [u8],
    ) -> Result<bool> {
        self.is_known = known.is_some();
        self.name = known.or_else(|| name.and_then(utf8));
        self.value = Value::new(Kind::from_byte(kind).ok_or_else(Error::damaged)?, value);
        Ok(true)
    }
}

/// Returns the length of the name at the start of `rest`.
#[inline]
fn name_length(rest: &[u8]) -> Result<usize> {
    terminator(rest).map(|terminator| terminator.at).ok_or_else(Error::damaged)
}

impl<'de> MapAccess<'de> for KnownFields<'de> {
    type Error = Error;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        if !self.advance()? {
            return Ok(None);
        }
        let name = self.name.ok_or_else(Error::damaged)?;
        seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some)
    }

    #[inline]
    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value> {
        let name = self.name.ok_or_else(no_value)?;
        if !self.is_known && type_of::is_ignored::<S::Value>() {
            self.unknown = Unknown::Skipped;
        }
        seed.deserialize(Deserializer::new(self.value, self.context)).map_err(|error: Error| error.within(name))
    }
}

/// The names of the fields of the struct that is deserialized.
#[derive(Debug)]
struct Names {
    names: &'static [&'static str],
    /// The number of the name that is expected next: most documents have the fields in the same order as the target.
    next: usize,
    /// The number of names that no field had yet. Repeated fields may make it too low.
    missing: usize,
    /// The hash bytes of all names. Computed only once a field had another name than the expected one.
    marks: Option<Marks>,
}

impl Names {
    /// Returns the name with which `rest` begins. `mark` is the mark of that name, if it is known.
    #[inline(always)]
    fn find(&mut self, rest: &[u8], mark: Option<u8>) -> Option<&'static str> {
        if let Some(name) = self.names.get(self.next)
            && begins_with(rest, name)
        {
            self.next += 1;
            self.missing = self.missing.saturating_sub(1);
            return Some(name);
        }
        self.search(rest, mark)
    }

    #[inline(never)]
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
        self.missing = self.missing.saturating_sub(1);
        self.names.get(at).copied()
    }
}

#[inline]
fn begins_with(rest: &[u8], name: &str) -> bool {
    rest.get(name.len()) == Some(&0) && rest.get(..name.len()).is_some_and(|front| same(front, name.as_bytes()))
}
