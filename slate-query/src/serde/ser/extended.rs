use bson::oid::ObjectId;
use serde::{
    Serialize,
    ser::{Impossible, SerializeMap, SerializeStruct},
};

use super::{super::newtype, Document, Error, Result, Serializer, length, unsupported::unsupported};
use crate::raw::Kind;

/// A value of one of the `bson` crate's types, which serialize as structs of extended JSON with a reserved name.
#[derive(Debug)]
pub(super) struct Extended<'a, 'b> {
    serializer: &'a mut Serializer<'b>,
    kind: Kind,
    /// The number of keys that were written, those of inner documents included.
    keys: usize,
    /// Where the value begins in the buffer.
    start: usize,
    /// The seconds of a timestamp.
    seconds: u32,
}

/// Returns the keys of each type, in order. Inner structs are flattened.
fn keys(kind: Kind) -> &'static [&'static [&'static str]] {
    match kind {
        Kind::ObjectId => &[&["$oid"]],
        Kind::DateTime => &[&["$date"], &["$numberLong"]],
        Kind::Binary => &[&["$binary"], &["base64", "bytes"], &["subType"]],
        Kind::Timestamp => &[&["$timestamp"], &["t"], &["i"]],
        Kind::MinKey => &[&["$minKey"]],
        Kind::MaxKey => &[&["$maxKey"]],
        Kind::Code => &[&["$code"]],
        Kind::CodeWithScope => &[&["$code"], &["$scope"]],
        Kind::Symbol => &[&["$symbol"]],
        Kind::Undefined => &[&["$undefined"]],
        Kind::Regex => &[&["$regularExpression"], &["pattern"], &["options"]],
        Kind::DbPointer => &[&["$dbPointer"], &["$ref"], &["$id"], &["$oid"]],
        Kind::Decimal128 => &[&["$numberDecimal", "$numberDecimalBytes"]],
        _ => &[],
    }
}

impl<'a, 'b> Extended<'a, 'b> {
    /// Returns the type that a struct of this name represents; `None` for other structs.
    #[inline]
    pub(super) fn kind(name: &str) -> Option<Kind> {
        if !name.starts_with('$') {
            return None;
        }
        Some(match name {
            "$oid" => Kind::ObjectId,
            "$date" => Kind::DateTime,
            "$binary" => Kind::Binary,
            "$timestamp" => Kind::Timestamp,
            "$minKey" => Kind::MinKey,
            "$maxKey" => Kind::MaxKey,
            "$code" => Kind::Code,
            "$codeWithScope" => Kind::CodeWithScope,
            "$symbol" => Kind::Symbol,
            "$undefined" => Kind::Undefined,
            "$regularExpression" => Kind::Regex,
            "$dbPointer" => Kind::DbPointer,
            "$numberDecimal" => Kind::Decimal128,
            _ => return None,
        })
    }

    pub(super) fn begin(serializer: &'a mut Serializer<'b>, kind: Kind) -> Result<Self> {
        serializer.begin(kind)?;
        let start = serializer.buffer.len();
        Ok(Self { serializer, kind, keys: 0, start, seconds: 0 })
    }

    pub(super) fn field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<()> {
        if !keys(self.kind).get(self.keys).is_some_and(|allowed| allowed.contains(&key)) {
            return Err(Error::new(format!("unexpected key {key:?} of a value of type {}", self.kind.alias())));
        }
        self.keys += 1;
        // All values of one of these types are the same.
        if matches!(self.kind, Kind::MinKey | Kind::MaxKey | Kind::Undefined) {
            return Ok(());
        }
        value.serialize(self)
    }

    pub(super) fn end(self) -> Result<()> {
        match keys(self.kind).get(self.keys) {
            None => Ok(()),
            Some(_) => Err(Error::new(format!("a value of type {} is not complete", self.kind.alias()))),
        }
    }

    #[cold]
    fn unsupported(&self, found: &str) -> Error {
        Error::new(format!("unexpected {found} in a value of type {}", self.kind.alias()))
    }

    fn append(&mut self, bytes: &[u8]) {
        self.serializer.buffer.extend_from_slice(bytes);
    }

    fn append_oid(&mut self, hex: &str) -> Result<()> {
        let oid = ObjectId::parse_str(hex).map_err(|error| Error::new(error.to_string()))?;
        self.append(&oid.bytes());
        Ok(())
    }

    /// Appends a binary's length and payload, and a placeholder for its subtype, which follows.
    fn append_payload(&mut self, payload: &[u8]) -> Result<()> {
        self.append(&length(payload.len())?);
        self.append(&[0]);
        self.append(payload);
        Ok(())
    }

    fn fill_subtype(&mut self, subtype: u8) -> Result<()> {
        if let Some(place) = self.serializer.buffer.get_mut(self.start + 4) {
            *place = subtype;
        }
        // The obsolete subtype 2 has an inner length.
        if subtype == 2 {
            let payload = self.serializer.buffer.split_off(self.start + 5);
            self.serializer.buffer.truncate(self.start);
            self.append(&length(payload.len() + 4)?);
            self.append(&[subtype]);
            self.append(&length(payload.len())?);
            self.append(&payload);
        }
        Ok(())
    }
}

impl<'x, 'b> serde::Serializer for &'x mut Extended<'_, 'b> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Impossible<(), Error>;
    type SerializeTuple = Impossible<(), Error>;
    type SerializeTupleStruct = Impossible<(), Error>;
    type SerializeTupleVariant = Impossible<(), Error>;
    type SerializeMap = CodeScope<'x, 'b>;
    type SerializeStruct = Self;
    type SerializeStructVariant = Impossible<(), Error>;

    fn is_human_readable(&self) -> bool {
        false
    }

    fn serialize_str(self, text: &str) -> Result<()> {
        let invalid = |error: &dyn std::fmt::Display| Error::new(error.to_string());
        match (self.kind, self.keys) {
            (Kind::ObjectId, 1) | (Kind::DbPointer, 4) => self.append_oid(text),
            (Kind::DateTime, 2) => {
                let millis: i64 = text.parse().map_err(|error| invalid(&error))?;
                self.append(&millis.to_le_bytes());
                Ok(())
            }
            (Kind::Binary, 2) => {
                let binary = bson::Binary::from_base64(text, None).map_err(|error| invalid(&error))?;
                self.append_payload(&binary.bytes)
            }
            (Kind::Binary, 3) => self.fill_subtype(u8::from_str_radix(text, 16).map_err(|error| invalid(&error))?),
            (Kind::Symbol | Kind::Code, 1) | (Kind::DbPointer, 2) => self.serializer.text(text),
            (Kind::CodeWithScope, 1) => {
                self.serializer.open();
                self.serializer.text(text)
            }
            (Kind::Regex, 2) => self.serializer.cstring(text),
            (Kind::Regex, 3) => {
                let mut options: Vec<_> = text.chars().collect();
                options.sort_unstable();
                self.serializer.cstring(&String::from_iter(options))
            }
            _ => Err(self.unsupported("string")),
        }
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<()> {
        match (self.kind, self.keys) {
            (Kind::Decimal128, 1) if bytes.len() == 16 => {
                self.append(bytes);
                Ok(())
            }
            (Kind::Binary, 2) => self.append_payload(bytes),
            (Kind::CodeWithScope, 2) => {
                self.append(bytes);
                self.serializer.fill(self.start)
            }
            _ => Err(self.unsupported("bytes")),
        }
    }

    fn serialize_i64(self, value: i64) -> Result<()> {
        let half = u32::try_from(value).map_err(|_| self.unsupported("integer"))?;
        match (self.kind, self.keys) {
            (Kind::Timestamp, 2) => self.seconds = half,
            (Kind::Timestamp, 3) => {
                self.append(&half.to_le_bytes());
                self.append(&self.seconds.to_le_bytes());
            }
            _ => return Err(self.unsupported("integer")),
        }
        Ok(())
    }

    fn serialize_u8(self, value: u8) -> Result<()> {
        if (self.kind, self.keys) == (Kind::Binary, 3) {
            self.fill_subtype(value)
        } else {
            Err(self.unsupported("integer"))
        }
    }

    /// Only a scope may be a raw document.
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, name: &'static str, value: &T) -> Result<()> {
        if name == newtype::RAW_DOCUMENT { value.serialize(self) } else { Err(self.unsupported("newtype")) }
    }

    fn serialize_struct(self, _name: &'static str, _len: usize) -> Result<Self> {
        Ok(self)
    }

    fn serialize_map(self, _len: Option<usize>) -> Result<CodeScope<'x, 'b>> {
        if (self.kind, self.keys) != (Kind::CodeWithScope, 2) {
            return Err(self.unsupported("map"));
        }
        let start = self.start;
        Ok(CodeScope { fields: Document::open(self.serializer)?, start })
    }

    unsupported! {
        bool i8 i16 i32 u16 u32 u64 f32 f64 char none some unit unit_struct unit_variant newtype_variant seq tuple
        tuple_struct tuple_variant struct_variant
    }
}

impl SerializeStruct for &mut Extended<'_, '_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<()> {
        self.field(key, value)
    }

    fn end(self) -> Result<()> {
        Ok(())
    }
}

/// The scope of a code.
#[derive(Debug)]
pub(super) struct CodeScope<'a, 'b> {
    fields: Document<'a, 'b>,
    /// Where the code with scope begins in the buffer.
    start: usize,
}

impl SerializeMap for CodeScope<'_, '_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        self.fields.serialize_key(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.fields.serialize_value(value)
    }

    fn end(self) -> Result<()> {
        self.fields.close()?.fill(self.start)
    }
}
