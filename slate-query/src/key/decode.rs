use super::{
    Direction, TypeReader,
    bits::code,
    encode::has_escaped,
    input::KeyInput,
    number,
    skip::{self, MAX_NESTING},
    tag,
};
use crate::raw::{Doc, Kind, OwnedValue, Value, Writer};

/// A decoded component of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// The field's value.
    Value(OwnedValue),
    /// The field was missing.
    Missing,
}

/// Whether the field of a decoded component existed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// The field existed, and its value was appended.
    Present,
    /// The field was missing, and nothing was appended.
    Missing,
}

/// Decodes the component at the start of `key`, which is in `direction`, and consumes it. The value has exactly the
/// bytes that were encoded. `None` if the key or the bits are damaged.
pub fn decode(key: &mut &[u8], direction: Direction, bits: &mut TypeReader<'_>) -> Option<Decoded> {
    let mut writer = Writer::new();
    match decode_into(key, direction, bits, b"", &mut writer)? {
        Presence::Missing => Some(Decoded::Missing),
        Presence::Present => Doc::new(&writer.finish()).values().next().map(|value| Decoded::Value(value.to_owned())),
    }
}

/// Like [`decode`], but appends the value to `writer` as a field named `name`. After `None` the output must be
/// discarded.
pub fn decode_into(
    key: &mut &[u8],
    direction: Direction,
    bits: &mut TypeReader<'_>,
    name: &[u8],
    writer: &mut Writer,
) -> Option<Presence> {
    let mut decoder = Decoder { input: KeyInput::new(key, direction), bits, writer };
    let presence = decoder.value(name, MAX_NESTING)?;
    *key = decoder.input.rest();
    Some(presence)
}

/// Replaces values in place by others of the same type with the same type bits, for the most common types of `_id`.
/// Much faster than writing the field again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overwrite {
    /// An int32.
    Int32,
    /// An int64 within the range of int32.
    SmallInt64,
    /// An int64 beyond the range of int32.
    LargeInt64,
    /// A string.
    String,
    /// An ObjectId.
    ObjectId,
}

impl Overwrite {
    /// Returns the way to overwrite values of this type with these type bits; `None` if such values must be written as usual.
    pub fn new(kind: Kind, bits: &[u8]) -> Option<Self> {
        let exception = TypeReader::new(bits).place();
        let (way, expected) = match kind {
            Kind::Int32 => (Self::Int32, None),
            Kind::Int64 if exception.is_some() => (Self::SmallInt64, Some(code::INT64)),
            Kind::Int64 => (Self::LargeInt64, None),
            Kind::String => (Self::String, None),
            Kind::ObjectId => (Self::ObjectId, None),
            _ => return None,
        };
        (exception == expected).then_some(way)
    }

    /// Replaces a value by the one that `key` encodes, which must be ascending and complete.
    ///
    /// Returns `None` and changes nothing if the type or the length differs, or the key is damaged.
    #[inline]
    pub fn put(self, key: &[u8], place: &mut [u8]) -> Option<()> {
        let (&tag, body) = key.split_first()?;
        match self {
            Self::Int32 => {
                let int = i32::try_from(number::decode_integer(tag, body)?).ok()?;
                *<&mut [u8; 4]>::try_from(place).ok()? = int.to_le_bytes();
            }
            Self::SmallInt64 | Self::LargeInt64 => {
                let int = number::decode_integer(tag, body)?;
                if i32::try_from(int).is_ok() != (self == Self::SmallInt64) {
                    return None;
                }
                *<&mut [u8; 8]>::try_from(place).ok()? = int.to_le_bytes();
            }
            Self::String => {
                let (&end, text) = body.split_last()?;
                let old = place.split_last_mut()?.1.get_mut(4..)?;
                if tag != tag::STRING || end != tag::END || old.len() != text.len() || has_escaped(text) {
                    return None;
                }
                old.copy_from_slice(text);
            }
            Self::ObjectId if tag == tag::OBJECT_ID && body.len() == place.len() => place.copy_from_slice(body),
            Self::ObjectId => return None,
        }
        Some(())
    }
}

struct Decoder<'d, 'k, 'b> {
    input: KeyInput<'k>,
    bits: &'d mut TypeReader<'b>,
    writer: &'d mut Writer,
}

impl Decoder<'_, '_, '_> {
    fn value(&mut self, name: &[u8], nesting: usize) -> Option<Presence> {
        let nesting = nesting.checked_sub(1)?;
        match self.input.peek()? {
            tag::NULL => return self.null(name),
            tag::MIN_KEY => self.constant(name, Value::new(Kind::MinKey, &[]))?,
            tag::UNDEFINED => self.constant(name, Value::UNDEFINED)?,
            tag::FALSE => self.constant(name, Value::new(Kind::Boolean, &[0]))?,
            tag::TRUE => self.constant(name, Value::new(Kind::Boolean, &[1]))?,
            tag::MAX_KEY => self.constant(name, Value::new(Kind::MaxKey, &[]))?,
            tag::STRING => self.string(name)?,
            tag::DOCUMENT => {
                self.input.skip(1)?;
                self.writer.open_document(name);
                self.document(nesting)?;
                self.writer.close();
            }
            tag::ARRAY => self.array(name, nesting)?,
            tag::BINARY => {
                self.input.skip(1)?;
                let length = self.input.length()?;
                self.composed(name, Kind::Binary, |input, out| {
                    out.extend_from_slice(&u32::try_from(length).ok()?.to_le_bytes());
                    input.copy(length.checked_add(1)?, out)
                })?;
            }
            tag::OBJECT_ID => {
                self.input.skip(1)?;
                let id: [u8; 12] = self.input.array()?;
                self.writer.append(name, Value::new(Kind::ObjectId, &id));
            }
            tag::DATE => {
                self.input.skip(1)?;
                let millis = i64::from_be_bytes(self.input.array()?) ^ i64::MIN;
                self.writer.append(name, Value::new(Kind::DateTime, &millis.to_le_bytes()));
            }
            tag::TIMESTAMP => {
                self.input.skip(1)?;
                let timestamp = u64::from_be_bytes(self.input.array()?);
                self.writer.append(name, Value::new(Kind::Timestamp, &timestamp.to_le_bytes()));
            }
            tag::REGEX => {
                self.input.skip(1)?;
                self.composed(name, Kind::Regex, |input, out| {
                    input.text(out)?;
                    out.push(0);
                    input.text(out)?;
                    out.push(0);
                    Some(())
                })?;
            }
            tag::DB_POINTER => {
                self.input.skip(1)?;
                let length = self.input.length()?;
                self.composed(name, Kind::DbPointer, |input, out| {
                    out.extend_from_slice(&u32::try_from(length.checked_add(1)?).ok()?.to_le_bytes());
                    input.copy(length, out)?;
                    out.push(0);
                    input.copy(12, out)
                })?;
            }
            tag::CODE => {
                self.input.skip(1)?;
                self.composed(name, Kind::Code, text)?;
            }
            tag::CODE_WITH_SCOPE => self.code_with_scope(name, nesting)?,
            _ => self.number(name)?,
        }
        Some(Presence::Present)
    }

    fn constant(&mut self, name: &[u8], value: Value<'_>) -> Option<()> {
        self.writer.append(name, value);
        self.input.skip(1)
    }

    fn null(&mut self, name: &[u8]) -> Option<Presence> {
        self.input.skip(1)?;
        match self.bits.place() {
            None => {
                self.writer.append(name, Value::NULL);
                Some(Presence::Present)
            }
            Some(code::MISSING) => {
                self.bits.done();
                Some(Presence::Missing)
            }
            Some(_) => None,
        }
    }

    fn string(&mut self, name: &[u8]) -> Option<()> {
        self.input.skip(1)?;
        let kind = match self.bits.place() {
            None => Kind::String,
            Some(code::SYMBOL) => {
                self.bits.done();
                Kind::Symbol
            }
            Some(_) => return None,
        };
        self.composed(name, kind, text)
    }

    fn number(&mut self, name: &[u8]) -> Option<()> {
        let tag = self.input.byte()?;
        let number = number::decode(tag, &mut self.input)?;
        let (kind, bytes) = match self.bits.place() {
            None => number.likeliest()?,
            Some(code) => {
                let value = match code {
                    code::RAW => return self.raw(name),
                    code::INT64 => number.int64()?,
                    code::DOUBLE => number.double()?,
                    code::NEGATIVE_ZERO => (Kind::Double, (-0.0_f64).to_le_bytes().into()),
                    code::DECIMAL => {
                        let [zeros] = *self.bits.take(1)? else { return None };
                        number.decimal(u32::from(zeros))?
                    }
                    code::DECIMAL_ZERO => {
                        let bits = u16::from_be_bytes(self.bits.take(2)?.try_into().ok()?);
                        (Kind::Decimal128, number::zero(bits).into())
                    }
                    _ => return None,
                };
                self.bits.done();
                value
            }
        };
        self.writer.append(name, Value::new(kind, bytes.as_slice()));
        Some(())
    }

    /// Appends a value that the bits contain as a whole.
    fn raw(&mut self, name: &[u8]) -> Option<()> {
        let [kind] = *self.bits.take(1)? else { return None };
        let kind = Kind::from_byte(kind)?;
        let length = self.bits.take_varint()?;
        let bytes = self.bits.take(length)?;
        if Value::measure(kind, bytes) != Some(length) {
            return None;
        }
        self.bits.done();
        self.writer.append(name, Value::new(kind, bytes));
        Some(())
    }

    fn document(&mut self, nesting: usize) -> Option<()> {
        while self.input.byte()? != tag::END {
            let mut name = Vec::new();
            self.input.text(&mut name)?;
            if self.value(&name, nesting)? == Presence::Missing {
                return None;
            }
        }
        Some(())
    }

    fn array(&mut self, name: &[u8], nesting: usize) -> Option<()> {
        match self.bits.place() {
            None => {}
            Some(code::RAW) => {
                skip::value(&mut self.input, nesting)?;
                return self.raw(name);
            }
            Some(_) => return None,
        }
        self.input.skip(1)?;
        self.writer.open_array(name);
        let mut position = PositionNames::default();
        while self.input.peek()? != tag::END {
            if self.value(position.next(), nesting)? == Presence::Missing {
                return None;
            }
        }
        self.writer.close();
        self.input.skip(1)
    }

    fn code_with_scope(&mut self, name: &[u8], nesting: usize) -> Option<()> {
        self.input.skip(1)?;
        let mut code = Vec::new();
        text(&mut self.input, &mut code)?;
        let mut scope = Writer::new();
        let inner = &mut Decoder { input: self.input, bits: &mut *self.bits, writer: &mut scope };
        inner.document(nesting)?;
        self.input = inner.input;
        let scope = scope.finish();
        let length = i32::try_from(code.len().checked_add(scope.len())?.checked_add(4)?).ok()?;
        let bytes = [&length.to_le_bytes()[..], &code, &scope].concat();
        self.writer.append(name, Value::new(Kind::CodeWithScope, &bytes));
        Some(())
    }

    /// Appends a value whose encoded bytes `compose` writes.
    fn composed(
        &mut self,
        name: &[u8],
        kind: Kind,
        compose: impl FnOnce(&mut KeyInput<'_>, &mut Vec<u8>) -> Option<()>,
    ) -> Option<()> {
        let input = &mut self.input;
        self.writer.append_with(name, kind, |out| compose(input, out))
    }
}

/// Appends a text as BSON encodes it: its length, its bytes, a NUL.
fn text(input: &mut KeyInput<'_>, out: &mut Vec<u8>) -> Option<()> {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    input.text(out)?;
    out.push(0);
    let length = i32::try_from(out.len() - start - 4).ok()?;
    out.get_mut(start..start + 4)?.copy_from_slice(&length.to_le_bytes());
    Some(())
}

/// The names of an array's elements, in order: "0", "1", ….
#[derive(Default)]
pub(super) struct PositionNames {
    digits: [u8; 10],
    length: usize,
}

impl PositionNames {
    /// Returns the next name.
    pub(super) fn next(&mut self) -> &[u8] {
        let start = self.digits.len() - self.length;
        let used = self.digits.get_mut(start..).unwrap_or_default();
        let grown = match used.iter().rposition(|&digit| digit != b'9') {
            _ if used.is_empty() => {
                self.length = 1;
                if let Some(last) = self.digits.last_mut() {
                    *last = b'0';
                }
                false
            }
            Some(place) => {
                if let Some((digit, nines)) = used.get_mut(place..).and_then(<[u8]>::split_first_mut) {
                    *digit += 1;
                    nines.fill(b'0');
                }
                false
            }
            None => {
                used.fill(b'0');
                true
            }
        };
        if grown {
            self.length += 1;
            let first = self.digits.len().saturating_sub(self.length);
            if let Some(digit) = self.digits.get_mut(first) {
                *digit = b'1';
            }
        }
        self.digits.get(self.digits.len().saturating_sub(self.length)..).unwrap_or_default()
    }
}
