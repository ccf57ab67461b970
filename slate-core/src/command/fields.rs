//! A command's fields, read as MongoDB's generated parsers read them: the codes and what null means are theirs.

use bson::RawDocumentBuf;
use slate_query::{
    Code,
    raw::{Doc, Kind, Value, validate},
};

use super::number;
use crate::{Error, Result, api::document::as_raw};

/// The fields of a command, or of a document within one. Each is taken out as it is read; what is left at the end is
/// unknown.
#[derive(Debug)]
pub(super) struct Fields<'c> {
    /// The path of the document they stand in, for messages.
    owner: String,
    left: Vec<(&'c str, Value<'c>)>,
}

impl<'c> Fields<'c> {
    /// Takes a document apart.
    ///
    /// # Errors
    /// `InvalidBSON` (22) for damaged bytes, `IDLDuplicateField` (40413).
    pub(super) fn read(owner: impl Into<String>, doc: Doc<'c>) -> Result<Self> {
        let mut fields = Self { owner: owner.into(), left: Vec::new() };
        // The length, one byte for the type and one that ends each name, and the terminator.
        let mut taken = 5;
        for element in doc.elements() {
            taken += 2 + element.name.len() + element.value.bytes().len();
            let name = std::str::from_utf8(element.name).map_err(|_| damaged("a field's name is not UTF-8"))?;
            if fields.left.iter().any(|(known, _)| *known == name) {
                let message = format!("BSON field '{}' is a duplicate field", fields.path(name));
                return Err(Error::invalid(Code::IDL_DUPLICATE_FIELD, message).at(name));
            }
            fields.left.push((name, element.value));
        }
        if taken != doc.bytes().len() {
            return Err(damaged("an element is cut short or of an unknown type"));
        }
        Ok(fields)
    }

    /// Takes a command apart: its name, what stands beside it, and the rest.
    ///
    /// # Errors
    /// As [`Fields::read`]; `CommandNotFound` (59) for a document without fields.
    pub(super) fn read_command(doc: Doc<'c>) -> Result<(&'c str, Value<'c>, Self)> {
        let mut fields = Self::read("", doc)?;
        if fields.left.is_empty() {
            return Err(Error::invalid(Code::COMMAND_NOT_FOUND, "an empty document names no command"));
        }
        let (name, target) = fields.left.remove(0);
        fields.owner = name.into();
        Ok((name, target, fields))
    }

    /// The value as it is, null too.
    pub(super) fn any(&mut self, name: &str) -> Option<Value<'c>> {
        let place = self.left.iter().position(|(known, _)| *known == name)?;
        Some(self.left.remove(place).1)
    }

    /// The value; null and undefined stand for none.
    pub(super) fn value(&mut self, name: &str) -> Option<Value<'c>> {
        self.any(name).filter(|value| !matches!(value.kind(), Kind::Null | Kind::Undefined))
    }

    /// A document, or none where it is missing or null.
    pub(super) fn object(&mut self, name: &str) -> Result<Option<Doc<'c>>> {
        self.value(name).map(|value| self.check_object(name, value)).transpose()
    }

    /// A document, or none where it is missing: null is refused here.
    pub(super) fn object_not_null(&mut self, name: &str) -> Result<Option<Doc<'c>>> {
        self.any(name).map(|value| self.check_object(name, value)).transpose()
    }

    fn check_object(&self, name: &str, value: Value<'c>) -> Result<Doc<'c>> {
        let doc = value.as_document().ok_or_else(|| self.mistyped(name, value, "object"))?;
        Ok(validate(doc.bytes())?)
    }

    /// A string, or none where it is missing or null.
    pub(super) fn string(&mut self, name: &str) -> Result<Option<&'c str>> {
        self.value(name).map(|value| value.as_str().ok_or_else(|| self.mistyped(name, value, "string"))).transpose()
    }

    /// A boolean and nothing else, or none where it is missing or null.
    pub(super) fn boolean(&mut self, name: &str) -> Result<Option<bool>> {
        self.value(name).map(|value| value.as_bool().ok_or_else(|| self.mistyped(name, value, "bool"))).transpose()
    }

    /// A boolean and nothing else, or none where it is missing: null is refused here.
    pub(super) fn boolean_not_null(&mut self, name: &str) -> Result<Option<bool>> {
        self.any(name).map(|value| value.as_bool().ok_or_else(|| self.mistyped(name, value, "bool"))).transpose()
    }

    /// A boolean or a number, which is true unless it is zero; none where it is missing or null.
    pub(super) fn truth(&mut self, name: &str) -> Result<Option<bool>> {
        let truth = |value: Value<'c>| value.as_bool().or_else(|| number::is_nonzero(value));
        self.value(name).map(|value| truth(value).ok_or_else(|| self.mistyped(name, value, "bool"))).transpose()
    }

    /// A number of any type as an integer, see [`number::to_i64`]; none where it is missing or null.
    pub(super) fn integer(&mut self, name: &str) -> Result<Option<i64>> {
        self.value(name)
            .map(|value| number::to_i64(value).ok_or_else(|| self.mistyped(name, value, "long")))
            .transpose()
    }

    /// As [`Fields::integer`], not below zero.
    ///
    /// # Errors
    /// `BadValue` (2) for a negative number.
    pub(super) fn size(&mut self, name: &str) -> Result<Option<u64>> {
        let Some(integer) = self.integer(name)? else { return Ok(None) };
        let size = u64::try_from(integer).map_err(|_| {
            let message = format!("BSON field '{name}' value must be >= 0, actual value '{integer}'");
            Error::invalid(Code::BAD_VALUE, message).at(name)
        })?;
        Ok(Some(size))
    }

    /// An array's documents, unchecked; none where it is missing or null.
    pub(super) fn objects(&mut self, name: &str) -> Result<Option<Vec<Doc<'c>>>> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let array = value.as_array().ok_or_else(|| self.mistyped(name, value, "array"))?;
        let object = |(place, value): (usize, Value<'c>)| {
            value.as_document().ok_or_else(|| self.mistyped(&format!("{name}.{place}"), value, "object"))
        };
        array.values().enumerate().map(object).collect::<Result<_>>().map(Some)
    }

    /// As [`Fields::objects`], each checked and copied.
    pub(super) fn owned_objects(&mut self, name: &str) -> Result<Option<Vec<RawDocumentBuf>>> {
        let Some(objects) = self.objects(name)? else { return Ok(None) };
        objects.into_iter().map(|doc| owned(validate(doc.bytes())?)).collect::<Result<_>>().map(Some)
    }

    /// Refuses by name fields that ask for what Slate does not offer: where they are there, not null and not false.
    pub(super) fn refuse(&mut self, names: &[&str]) -> Result<()> {
        match names.iter().find(|name| self.value(name).is_some_and(|value| value.as_bool() != Some(false))) {
            Some(name) => Err(Error::unsupported_by_name(name).at(name)),
            None => Ok(()),
        }
    }

    /// Refuses by name documents that ask for what Slate does not offer, where they hold anything.
    pub(super) fn refuse_filled(&mut self, names: &[&str]) -> Result<()> {
        for name in names {
            if self.object(name)?.is_some_and(|options| !options.is_empty()) {
                return Err(Error::unsupported_by_name(name).at(name));
            }
        }
        Ok(())
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// `IDLUnknownField` (40415) where a field is left.
    pub(super) fn finish(self) -> Result<()> {
        let Some((name, _)) = self.left.first() else { return Ok(()) };
        let message = format!("BSON field '{}' is an unknown field.", self.path(name));
        Err(Error::invalid(Code::IDL_UNKNOWN_FIELD, message).at(name))
    }

    /// The names of what was not taken yet.
    pub(super) fn names(&self) -> impl Iterator<Item = &'c str> {
        self.left.iter().map(|(name, _)| *name)
    }

    pub(super) fn mistyped(&self, name: &str, value: Value<'_>, expected: &str) -> Error {
        let (path, found) = (self.path(name), value.kind().alias());
        let message = format!("BSON field '{path}' is the wrong type '{found}', expected type '{expected}'");
        Error::invalid(Code::TYPE_MISMATCH, message).at(name)
    }

    fn path(&self, name: &str) -> String {
        if self.owner.is_empty() { name.into() } else { format!("{}.{name}", self.owner) }
    }
}

/// `IDLFailedToParse` (40414), for a field that must be there.
pub(super) fn missing(owner: &str, name: &str) -> Error {
    let message = format!("BSON field '{owner}.{name}' is missing but a required field");
    Error::invalid(Code::IDL_FAILED_TO_PARSE, message).at(name)
}

/// A copy of a document.
pub(super) fn owned(doc: Doc<'_>) -> Result<RawDocumentBuf> {
    Ok(as_raw(doc.bytes())?.to_owned())
}

fn damaged(what: &str) -> Error {
    Error::invalid(Code::INVALID_BSON, format!("invalid BSON: {what}"))
}
