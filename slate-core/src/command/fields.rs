//! Reads a command's fields like MongoDB's generated parsers, with the same error codes and meaning of null.

use bson::RawDocumentBuf;
use slate_query::{
    Code,
    number::truth,
    raw::{Doc, Value, validate},
};

use super::number;
use crate::{Error, Result, document::as_raw};

/// Maximum number of fields of a command or of a document within it: several times as many as any has. Bounds the time of the search for repeated
/// ones.
const MAX_FIELDS: usize = 1_000;

/// MongoDB's limit on the statements of a command, and on all arrays of documents in commands.
pub(super) const MAX_STATEMENTS: usize = 100_000;

/// Fails with `InvalidLength` (16) for more than [`MAX_STATEMENTS`] statements.
fn check_length(name: &str, statements: usize) -> Result<()> {
    if statements <= MAX_STATEMENTS {
        return Ok(());
    }
    let message = format!("Write batch sizes must be between 1 and {MAX_STATEMENTS}. Got {statements}");
    Err(Error::invalid(Code::INVALID_LENGTH, message).at(name))
}

/// The fields of a command or of a document within it. Reading a field removes it; the fields that remain at the end
/// are unknown.
#[derive(Debug)]
pub(super) struct Fields<'c> {
    /// The path of the document, for messages.
    owner: String,
    left: Vec<(&'c str, Value<'c>)>,
}

impl<'c> Fields<'c> {
    /// Reads the fields of a document.
    ///
    /// # Errors
    /// Fails with `InvalidBSON` (22) on damaged bytes, with `IDLDuplicateField` (40413) on a repeated field, with `IDLUnknownField` (40415)
    /// on more than 1,000 fields.
    pub(super) fn read(owner: impl Into<String>, doc: Doc<'c>) -> Result<Self> {
        let mut fields = Self { owner: owner.into(), left: Vec::new() };
        // The length and the terminator; each element adds its type, its name with its terminator, and its value.
        let mut taken = 5;
        for element in doc.elements() {
            taken += 2 + element.name.len() + element.value.bytes().len();
            let name = std::str::from_utf8(element.name).map_err(|_| damaged("a field name is not UTF-8"))?;
            if fields.left.iter().any(|(known, _)| *known == name) {
                let message = format!("BSON field '{}' is a duplicate field", fields.path(name));
                return Err(Error::invalid(Code::IDL_DUPLICATE_FIELD, message).at(name));
            }
            if fields.left.len() == MAX_FIELDS {
                let message =
                    format!("BSON field '{}' is behind {MAX_FIELDS} others, which is the limit", fields.path(name));
                return Err(Error::invalid(Code::IDL_UNKNOWN_FIELD, message).at(name));
            }
            fields.left.push((name, element.value));
        }
        if taken != doc.bytes().len() {
            return Err(damaged("an element is truncated or has an unknown type"));
        }
        Ok(fields)
    }

    /// Reads a command: its name, the value of the name, and the other fields.
    ///
    /// # Errors
    /// Fails like [`Fields::read`], and with `CommandNotFound` (59) for an empty document.
    pub(super) fn read_command(doc: Doc<'c>) -> Result<(&'c str, Value<'c>, Self)> {
        let mut fields = Self::read("", doc)?;
        if fields.left.is_empty() {
            return Err(Error::invalid(Code::COMMAND_NOT_FOUND, "an empty document names no command"));
        }
        let (name, target) = fields.left.remove(0);
        fields.owner = name.into();
        Ok((name, target, fields))
    }

    /// Returns a field's value and does not remove the field.
    pub(super) fn peek(&self, name: &str) -> Option<Value<'c>> {
        self.left.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// Replaces a field's value; has no effect if the field is missing.
    pub(super) fn replace(&mut self, name: &str, value: Value<'c>) {
        self.left.iter_mut().filter(|(known, _)| *known == name).for_each(|(_, old)| *old = value);
    }

    /// Reads a value, which may be null; `None` if the field is missing.
    pub(super) fn any(&mut self, name: &str) -> Option<Value<'c>> {
        let place = self.left.iter().position(|(known, _)| *known == name)?;
        Some(self.left.remove(place).1)
    }

    /// Reads a value. Null and undefined count as missing.
    pub(super) fn value(&mut self, name: &str) -> Option<Value<'c>> {
        self.any(name).filter(|value| !value.is_nullish())
    }

    /// Reads a document. Null counts as missing.
    pub(super) fn object(&mut self, name: &str) -> Result<Option<Doc<'c>>> {
        self.value(name).map(|value| self.check_object(name, value)).transpose()
    }

    /// Reads a document. Null fails.
    pub(super) fn object_not_null(&mut self, name: &str) -> Result<Option<Doc<'c>>> {
        self.any(name).map(|value| self.check_object(name, value)).transpose()
    }

    fn check_object(&self, name: &str, value: Value<'c>) -> Result<Doc<'c>> {
        let doc = value.as_document().ok_or_else(|| self.mistyped(name, value, "object"))?;
        Ok(validate(doc.bytes())?)
    }

    /// Reads a string. Null counts as missing.
    pub(super) fn string(&mut self, name: &str) -> Result<Option<&'c str>> {
        self.value(name).map(|value| value.as_str().ok_or_else(|| self.mistyped(name, value, "string"))).transpose()
    }

    /// Reads a boolean, no other type. Null counts as missing.
    pub(super) fn boolean(&mut self, name: &str) -> Result<Option<bool>> {
        self.value(name).map(|value| value.as_bool().ok_or_else(|| self.mistyped(name, value, "bool"))).transpose()
    }

    /// Reads a boolean, no other type. Null fails.
    pub(super) fn boolean_not_null(&mut self, name: &str) -> Result<Option<bool>> {
        self.any(name).map(|value| value.as_bool().ok_or_else(|| self.mistyped(name, value, "bool"))).transpose()
    }

    /// Reads a boolean, or a number that is true unless it is zero. Null counts as missing.
    pub(super) fn truth(&mut self, name: &str) -> Result<Option<bool>> {
        self.value(name).map(|value| truth(value).ok_or_else(|| self.mistyped(name, value, "bool"))).transpose()
    }

    /// Reads a number of any type as an integer, see [`number::to_i64`]. Null counts as missing.
    pub(super) fn integer(&mut self, name: &str) -> Result<Option<i64>> {
        self.value(name)
            .map(|value| number::to_i64(value).ok_or_else(|| self.mistyped(name, value, "long")))
            .transpose()
    }

    /// Like [`Fields::integer`], for numbers of at least zero.
    ///
    /// # Errors
    /// Fails with `BadValue` (2) for a negative number.
    pub(super) fn size(&mut self, name: &str) -> Result<Option<u64>> {
        let Some(integer) = self.integer(name)? else { return Ok(None) };
        let size = u64::try_from(integer).map_err(|_| {
            let message = format!("BSON field '{name}' value must be >= 0, actual value '{integer}'");
            Error::invalid(Code::BAD_VALUE, message).at(name)
        })?;
        Ok(Some(size))
    }

    /// Reads an array's documents without validating them. Null counts as missing.
    ///
    /// # Errors
    /// Fails with `InvalidLength` (16) for more than [`MAX_STATEMENTS`] documents, before memory is allocated for them.
    pub(super) fn objects(&mut self, name: &str) -> Result<Option<Vec<Doc<'c>>>> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let array = value.as_array().ok_or_else(|| self.mistyped(name, value, "array"))?;
        check_length(name, array.values().count())?;
        let object = |(place, value): (usize, Value<'c>)| {
            value.as_document().ok_or_else(|| self.mistyped(&format!("{name}.{place}"), value, "object"))
        };
        array.values().enumerate().map(object).collect::<Result<_>>().map(Some)
    }

    /// Like [`Fields::objects`]; parses each document.
    pub(super) fn parsed_objects<T>(
        &mut self,
        name: &str,
        parse: impl Fn(Doc<'c>) -> Result<T>,
    ) -> Result<Option<Vec<T>>> {
        let objects = self.objects(name)?;
        objects.map(|objects| objects.into_iter().map(parse).collect()).transpose()
    }

    /// Like [`Fields::objects`]; validates and copies each document.
    pub(super) fn owned_objects(&mut self, name: &str) -> Result<Option<Vec<RawDocumentBuf>>> {
        self.parsed_objects(name, |doc| owned(validate(doc.bytes())?))
    }

    /// Fails with the field's name if one of these unsupported fields is present and neither null nor false.
    pub(super) fn refuse(&mut self, names: &[&str]) -> Result<()> {
        match names.iter().find(|name| self.value(name).is_some_and(|value| value.as_bool() != Some(false))) {
            Some(name) => Err(Error::unsupported_by_name(name).at(name)),
            None => Ok(()),
        }
    }

    /// Fails with the field's name if one of these unsupported documents is not empty.
    pub(super) fn refuse_filled(&mut self, names: &[&str]) -> Result<()> {
        for name in names {
            if self.object(name)?.is_some_and(|options| !options.is_empty()) {
                return Err(Error::unsupported_by_name(name).at(name));
            }
        }
        Ok(())
    }

    /// Checks that every field was read.
    ///
    /// # Errors
    /// Fails with `IDLUnknownField` (40415) if a field remains.
    pub(super) fn finish(self) -> Result<()> {
        let Some((name, _)) = self.left.first() else { return Ok(()) };
        let message = format!("BSON field '{}' is an unknown field.", self.path(name));
        Err(Error::invalid(Code::IDL_UNKNOWN_FIELD, message).at(name))
    }

    /// Returns the names of the remaining fields.
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

/// Returns the error for a missing required field: `IDLFailedToParse` (40414).
pub(super) fn missing(owner: &str, name: &str) -> Error {
    let message = format!("BSON field '{owner}.{name}' is missing but a required field");
    Error::invalid(Code::IDL_FAILED_TO_PARSE, message).at(name)
}

/// Copies a document.
pub(super) fn owned(doc: Doc<'_>) -> Result<RawDocumentBuf> {
    Ok(as_raw(doc.bytes())?.to_owned())
}

/// Passes a copy of `doc` to `set`; does nothing for `None`.
pub(super) fn given(doc: Option<Doc<'_>>, set: impl FnOnce(RawDocumentBuf)) -> Result<()> {
    if let Some(doc) = doc {
        set(owned(doc)?);
    }
    Ok(())
}

fn damaged(what: &str) -> Error {
    Error::invalid(Code::INVALID_BSON, format!("invalid BSON: {what}"))
}
