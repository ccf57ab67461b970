use serde::{Serialize, ser::SerializeMap};

use self::{
    document::{Document, Struct, Variant},
    extended::Extended,
};
use super::{Error, newtype, readability::Readability};
use crate::raw::{Kind, MAX_DEPTH};

mod document;
mod extended;
mod key;
mod unsupported;

type Result<T, E = Error> = std::result::Result<T, E>;

/// Serializes a value that is a document, and appends its BSON to `buffer`. After an error `buffer` is unchanged.
///
/// Raw documents in it are not validated.
///
/// # Errors
/// Fails if the value is not a document, or nests deeper than [`MAX_DEPTH`], an integer exceeds an int64, a document exceeds 2 GiB, a key is not a
/// string, or a name contains a NUL; the error contains the path of the field at fault.
pub fn serialize<T: Serialize + ?Sized>(value: &T, buffer: &mut Vec<u8>) -> Result<()> {
    let start = buffer.len();
    let mut serializer = Serializer { buffer, place: None, depth: 0, bytes: Bytes::Binary, form: Readability::Compact };
    let serialized = value.serialize(&mut serializer);
    if serialized.is_err() {
        buffer.truncate(start);
    }
    serialized
}

/// Appends one value after another to a buffer.
#[derive(Debug)]
struct Serializer<'b> {
    buffer: &'b mut Vec<u8>,
    /// Where the type byte of the next value goes. It precedes the name and is known only after the name was written.
    /// `None` for the outermost document, which has neither type nor name.
    place: Option<usize>,
    /// How many documents and arrays are open.
    depth: usize,
    /// How the next byte string is encoded.
    bytes: Bytes,
    form: Readability,
}

/// How a byte string is encoded, which depends on the type that serializes it.
#[derive(Clone, Copy, Debug)]
enum Bytes {
    Binary,
    Uuid,
    Document,
    Array,
}

impl Serializer<'_> {
    /// Begins a value of that type.
    #[inline]
    fn begin(&mut self, kind: Kind) -> Result<()> {
        match self.place {
            Some(place) => {
                if let Some(byte) = self.buffer.get_mut(place) {
                    *byte = kind.byte();
                }
                Ok(())
            }
            None if kind == Kind::Document => Ok(()),
            None => Err(Error::new(format!("expected a document, found a value of type {}", kind.alias()))),
        }
    }

    #[inline]
    fn append(&mut self, kind: Kind, bytes: &[u8]) -> Result<()> {
        self.begin(kind)?;
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// Begins a field with that name. Its type follows.
    #[inline]
    fn name(&mut self, name: &str) -> Result<()> {
        self.place = Some(self.buffer.len());
        self.buffer.push(0);
        self.cstring(name)
    }

    /// Begins an element of an array.
    #[inline]
    fn position(&mut self, position: usize) {
        self.place = Some(self.buffer.len());
        self.buffer.push(0);
        match u8::try_from(position) {
            Ok(digit @ 0..10) => self.buffer.push(b'0' + digit),
            _ => self.buffer.extend_from_slice(position.to_string().as_bytes()),
        }
        self.buffer.push(0);
    }

    #[inline]
    fn cstring(&mut self, text: &str) -> Result<()> {
        if text.as_bytes().contains(&0) {
            return Err(Error::new(format!(
                "a field's name and a regular expression must not contain a NUL: {text:?}"
            )));
        }
        self.buffer.extend_from_slice(text.as_bytes());
        self.buffer.push(0);
        Ok(())
    }

    /// Appends a text with its length and a NUL.
    #[inline]
    fn text(&mut self, text: &str) -> Result<()> {
        self.buffer.extend_from_slice(&length(text.len() + 1)?);
        self.buffer.extend_from_slice(text.as_bytes());
        self.buffer.push(0);
        Ok(())
    }

    /// Appends the placeholder of a length and returns where it is.
    #[inline]
    fn open(&mut self) -> usize {
        let start = self.buffer.len();
        self.buffer.extend_from_slice(&[0; 4]);
        start
    }

    /// Opens a document or an array, and returns where it is. Fails beyond [`MAX_DEPTH`]: each level
    /// takes a part of the stack.
    #[inline]
    fn open_nested(&mut self) -> Result<usize> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err(Error::too_deep()) } else { Ok(self.open()) }
    }

    /// Appends the terminator of the document that begins at `start`, and fills in its length.
    #[inline]
    fn close(&mut self, start: usize) -> Result<()> {
        self.depth -= 1;
        self.buffer.push(0);
        self.fill(start)
    }

    /// Writes the length of the buffer from `start` into the placeholder at `start`.
    #[inline]
    fn fill(&mut self, start: usize) -> Result<()> {
        let length = length(self.buffer.len() - start)?;
        if let Some(place) = self.buffer.get_mut(start..start + 4) {
            place.copy_from_slice(&length);
        }
        Ok(())
    }

    fn append_binary(&mut self, subtype: u8, payload: &[u8]) -> Result<()> {
        self.begin(Kind::Binary)?;
        self.buffer.extend_from_slice(&length(payload.len())?);
        self.buffer.push(subtype);
        self.buffer.extend_from_slice(payload);
        Ok(())
    }
}

/// Returns a length as BSON represents it; fails above 2 GiB.
#[inline]
fn length(bytes: usize) -> Result<[u8; 4]> {
    i32::try_from(bytes).map(i32::to_le_bytes).map_err(|_| Error::new("the document exceeds 2 GiB"))
}

impl<'a, 'b> serde::Serializer for &'a mut Serializer<'b> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Document<'a, 'b>;
    type SerializeTuple = Document<'a, 'b>;
    type SerializeTupleStruct = Document<'a, 'b>;
    type SerializeTupleVariant = Variant<'a, 'b>;
    type SerializeMap = Document<'a, 'b>;
    type SerializeStruct = Struct<'a, 'b>;
    type SerializeStructVariant = Variant<'a, 'b>;

    fn is_human_readable(&self) -> bool {
        self.form == Readability::HumanReadable
    }

    #[inline]
    fn serialize_bool(self, value: bool) -> Result<()> {
        self.append(Kind::Boolean, &[u8::from(value)])
    }

    #[inline]
    fn serialize_i8(self, value: i8) -> Result<()> {
        self.serialize_i32(value.into())
    }

    #[inline]
    fn serialize_i16(self, value: i16) -> Result<()> {
        self.serialize_i32(value.into())
    }

    #[inline]
    fn serialize_i32(self, value: i32) -> Result<()> {
        self.append(Kind::Int32, &value.to_le_bytes())
    }

    #[inline]
    fn serialize_i64(self, value: i64) -> Result<()> {
        self.append(Kind::Int64, &value.to_le_bytes())
    }

    #[inline]
    fn serialize_u8(self, value: u8) -> Result<()> {
        self.serialize_i32(value.into())
    }

    #[inline]
    fn serialize_u16(self, value: u16) -> Result<()> {
        self.serialize_i32(value.into())
    }

    #[inline]
    fn serialize_u32(self, value: u32) -> Result<()> {
        self.serialize_i64(value.into())
    }

    #[inline]
    fn serialize_u64(self, value: u64) -> Result<()> {
        match i64::try_from(value) {
            Ok(value) => self.serialize_i64(value),
            Err(_) => Err(Error::new(format!("the integer {value} exceeds an int64"))),
        }
    }

    #[inline]
    fn serialize_f32(self, value: f32) -> Result<()> {
        self.serialize_f64(value.into())
    }

    #[inline]
    fn serialize_f64(self, value: f64) -> Result<()> {
        self.append(Kind::Double, &value.to_le_bytes())
    }

    fn serialize_char(self, value: char) -> Result<()> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    #[inline]
    fn serialize_str(self, value: &str) -> Result<()> {
        self.begin(Kind::String)?;
        self.text(value)
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<()> {
        match std::mem::replace(&mut self.bytes, Bytes::Binary) {
            Bytes::Binary => self.append_binary(0, value),
            Bytes::Uuid => self.append_binary(4, value),
            Bytes::Document => self.append(Kind::Document, value),
            Bytes::Array => self.append(Kind::Array, value),
        }
    }

    #[inline]
    fn serialize_none(self) -> Result<()> {
        self.begin(Kind::Null)
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<()> {
        value.serialize(self)
    }

    #[inline]
    fn serialize_unit(self) -> Result<()> {
        self.begin(Kind::Null)
    }

    #[inline]
    fn serialize_unit_struct(self, _name: &'static str) -> Result<()> {
        self.begin(Kind::Null)
    }

    #[inline]
    fn serialize_unit_variant(self, _name: &'static str, _index: u32, variant: &'static str) -> Result<()> {
        self.serialize_str(variant)
    }

    #[inline]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, name: &'static str, value: &T) -> Result<()> {
        if !name.starts_with(newtype::PREFIX) {
            return value.serialize(self);
        }
        let (bytes, form) = (self.bytes, self.form);
        match name {
            newtype::UUID => self.bytes = Bytes::Uuid,
            newtype::RAW_DOCUMENT => self.bytes = Bytes::Document,
            newtype::RAW_ARRAY => self.bytes = Bytes::Array,
            newtype::HUMAN_READABLE => self.form = Readability::HumanReadable,
            _ => {}
        }
        let serialized = value.serialize(&mut *self);
        (self.bytes, self.form) = (bytes, form);
        serialized
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<()> {
        let mut document = Document::begin(self, Kind::Document)?;
        document.serialize_entry(variant, value)?;
        SerializeMap::end(document)
    }

    #[inline]
    fn serialize_seq(self, _len: Option<usize>) -> Result<Document<'a, 'b>> {
        Document::begin(self, Kind::Array)
    }

    #[inline]
    fn serialize_tuple(self, _len: usize) -> Result<Document<'a, 'b>> {
        Document::begin(self, Kind::Array)
    }

    #[inline]
    fn serialize_tuple_struct(self, _name: &'static str, _len: usize) -> Result<Document<'a, 'b>> {
        Document::begin(self, Kind::Array)
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Variant<'a, 'b>> {
        Variant::begin(self, variant, Kind::Array)
    }

    #[inline]
    fn serialize_map(self, _len: Option<usize>) -> Result<Document<'a, 'b>> {
        Document::begin(self, Kind::Document)
    }

    #[inline]
    fn serialize_struct(self, name: &'static str, _len: usize) -> Result<Struct<'a, 'b>> {
        match Extended::kind(name) {
            None => Document::begin(self, Kind::Document).map(Struct::Document),
            Some(kind) => Extended::begin(self, kind).map(Struct::Extended),
        }
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Variant<'a, 'b>> {
        Variant::begin(self, variant, Kind::Document)
    }
}
