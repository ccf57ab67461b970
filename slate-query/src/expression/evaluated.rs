use crate::{
    Code, Error, Result, held,
    held::Held,
    raw::{Kind, MAX_DEPTH, OwnedValue, Value, Writer},
    work,
};

/// The most bytes of a computed value. The documents that it is computed from have at most 16 MiB.
pub(super) const MOST_BYTES: usize = 64 << 20;

/// Fails with 10334 above [`MOST_BYTES`], with `ExceededMemoryLimit` (146) above the limit of the call.
#[inline]
pub(crate) fn check_size(bytes: usize) -> Result<()> {
    if bytes <= MOST_BYTES.min(held::limit()) { Ok(()) } else { Err(too_large(bytes)) }
}

#[cold]
fn too_large(bytes: usize) -> Error {
    if bytes <= MOST_BYTES {
        return held::exceeded("a value of an expression takes");
    }
    Error::new(Code(10334), "an expression has a value of more than 64 MiB")
}

/// Fails with 10334 for a row above [`MOST_BYTES`].
#[inline]
pub(crate) fn check_row(bytes: usize) -> Result<()> {
    if bytes <= MOST_BYTES { Ok(()) } else { Err(too_large(bytes)) }
}

/// Fails with `Overflow` (15) if a value nests deeper than a document may: functions of the engine recurse into values.
#[inline]
pub(crate) fn check_depth(value: Value<'_>) -> Result<()> {
    if value.is_deeper_than(MAX_DEPTH) {
        return Err(Error::new(
            Code::OVERFLOW,
            format!("an expression has a value that nests more than {MAX_DEPTH} deep"),
        ));
    }
    Ok(())
}

/// The value of an expression.
#[derive(Clone, Debug)]
pub enum Evaluated<'v> {
    /// There is no value: a field does not exist. Differs from null.
    Missing,
    /// A value in the document, the expression or a variable.
    Borrowed(Value<'v>),
    /// A computed value.
    Owned(OwnedValue),
}

impl<'v> Evaluated<'v> {
    /// Null.
    pub const NULL: Self = Self::Borrowed(Value::NULL);

    /// Returns the value; `None` if it is missing.
    #[inline]
    pub fn as_value(&self) -> Option<Value<'_>> {
        match self {
            Self::Missing => None,
            Self::Borrowed(value) => Some(*value),
            Self::Owned(value) => Some(value.as_value()),
        }
    }

    /// Returns the value, where a missing value is null.
    #[inline]
    pub(super) fn or_null(&self) -> Value<'_> {
        self.as_value().unwrap_or(Value::NULL)
    }

    /// Returns the value unless it is missing, null or undefined.
    #[inline]
    pub(super) fn present(&self) -> Option<Value<'_>> {
        self.as_value().filter(|value| !value.is_nullish())
    }

    /// Returns whether the value is missing, null or undefined.
    #[inline]
    pub(super) fn is_nullish(&self) -> bool {
        self.present().is_none()
    }

    /// Returns the value as a condition: missing, null, undefined, false and zero are false.
    pub fn is_true(&self) -> bool {
        self.present().is_some_and(|value| match value.kind() {
            Kind::Boolean => value.as_bool() == Some(true),
            _ => crate::number::Number::of(value).is_none_or(|number| number != crate::number::Number::Int32(0)),
        })
    }

    /// Returns the bytes that the value itself takes on the heap. A borrowed one takes none.
    #[inline]
    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Self::Missing | Self::Borrowed(_) => 0,
            Self::Owned(value) => value.heap_bytes(),
        }
    }

    /// Like [`into_owned`](Self::into_owned), but counts the bytes of the value in `held`.
    ///
    /// # Errors
    /// As [`Held::add`].
    pub(super) fn into_held(self, held: &mut Held) -> Result<Evaluated<'static>> {
        held.add(self.as_value().map_or(0, |value| value.bytes().len()))?;
        Ok(self.into_owned())
    }

    /// Copies a borrowed value.
    pub fn into_owned(self) -> Evaluated<'static> {
        match self {
            Self::Missing => Evaluated::Missing,
            Self::Borrowed(value) => Evaluated::Owned(value.to_owned()),
            Self::Owned(value) => Evaluated::Owned(value),
        }
    }

    /// Creates a computed value of `kind` with these bytes.
    pub(super) fn of(kind: Kind, bytes: &[u8]) -> Self {
        Self::Owned(Value::new(kind, bytes).to_owned())
    }

    pub(super) fn int32(int: i32) -> Self {
        Self::of(Kind::Int32, &int.to_le_bytes())
    }

    pub(super) fn int64(int: i64) -> Self {
        Self::of(Kind::Int64, &int.to_le_bytes())
    }

    /// Creates a length or a position: an int32, or an int64 beyond the range of int32.
    pub(crate) fn count(count: usize) -> Self {
        match i32::try_from(count) {
            Ok(count) => Self::int32(count),
            Err(_) => Self::int64(i64::try_from(count).unwrap_or(i64::MAX)),
        }
    }

    pub(super) fn double(double: f64) -> Self {
        Self::of(Kind::Double, &double.to_le_bytes())
    }

    pub(crate) fn date(millis: i64) -> Self {
        Self::of(Kind::DateTime, &millis.to_le_bytes())
    }

    pub(super) fn string(text: &str) -> Self {
        let length = i32::try_from(text.len() + 1).unwrap_or(i32::MAX);
        Self::Owned(OwnedValue::concat(Kind::String, &[&length.to_le_bytes(), text.as_bytes(), &[0]]))
    }

    /// Finishes a document.
    pub(super) fn document(writer: Writer) -> Self {
        Self::of(Kind::Document, &writer.finish())
    }

    /// Creates an array of values whose memory an accumulator has counted. It is incomplete if the call ends early.
    pub(super) fn array_of_counted<'a>(values: impl IntoIterator<Item = Value<'a>>) -> Self {
        let mut array = Writer::new();
        for (place, value) in values.into_iter().enumerate() {
            if !work::spend(1 + value.bytes().len() / 256) {
                break;
            }
            array.append(crate::raw::digits(place).as_bytes(), value);
        }
        Self::of(Kind::Array, &array.finish())
    }
}

impl From<bool> for Evaluated<'_> {
    fn from(value: bool) -> Self {
        Self::Borrowed(Value::new(Kind::Boolean, if value { &[1] } else { &[0] }))
    }
}

impl From<crate::number::Number> for Evaluated<'_> {
    fn from(number: crate::number::Number) -> Self {
        use crate::number::Number;
        match number {
            Number::Int32(int) => Self::int32(int),
            Number::Int64(int) => Self::int64(int),
            Number::Double(double) => Self::double(double),
            Number::Decimal(decimal) => Self::of(Kind::Decimal128, &decimal.to_bits()),
        }
    }
}

/// Writes a document or an array that an expression computes, and counts its memory before the buffer grows. Once a limit is exceeded, appends
/// nothing more.
#[derive(Debug, Default)]
pub(super) struct DocumentWriter {
    writer: Writer,
    held: Held,
    /// The counted bytes: the capacity of the writer.
    room: usize,
    /// The size in bytes at which the buffer could not grow; 0 if it always could.
    refused: usize,
}

/// Minimum buffer size, in bytes.
const LEAST_ROOM: usize = 64;

impl DocumentWriter {
    /// Appends a field. `name` must not contain a NUL byte.
    pub(super) fn append(&mut self, name: &[u8], value: Value<'_>) {
        if self.refused > 0 || !work::spend(1 + value.bytes().len() / 256) {
            return;
        }
        // One byte each for the kind, the end of the name and the end of the document.
        let needed = self.writer.len() + name.len() + value.bytes().len() + 3;
        if needed <= self.room || self.grow(needed) {
            self.writer.append(name, value);
        }
    }

    /// Grows the buffer to at least `needed` bytes, and usually to twice its size. Returns false if a limit is exceeded.
    #[inline(never)]
    fn grow(&mut self, needed: usize) -> bool {
        let room = needed.max(LEAST_ROOM.max(2 * self.room).min(MOST_BYTES));
        // Old and new buffer exist while copying.
        let moved = Held::of(self.room);
        if needed > MOST_BYTES || moved.is_err() || self.held.add(room - self.room).is_err() {
            self.refused = needed;
            return false;
        }
        self.writer.reserve_exact(room);
        self.room = room;
        true
    }

    /// Fails as [`check_size`] does; with `ExceededMemoryLimit` (146) if all values that expressions hold exceed the limit of the call.
    #[inline]
    pub(super) fn check(&self) -> Result<()> {
        if self.refused > 0 { Err(self.refusal()) } else { Ok(()) }
    }

    #[cold]
    fn refusal(&self) -> Error {
        check_size(self.refused).err().unwrap_or_else(held::too_many)
    }

    /// Returns the document, or the array if its fields have the names of positions.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub(super) fn finish<'v>(self, kind: Kind) -> Result<Evaluated<'v>> {
        self.check()?;
        let _copy = Held::of(self.writer.len())?;
        work::take_copied(self.writer.len())?;
        Ok(Evaluated::of(kind, &self.writer.finish()))
    }
}

/// Writes an array value by value, as a [`DocumentWriter`].
#[derive(Debug, Default)]
pub(super) struct ArrayWriter {
    elements: DocumentWriter,
    length: usize,
}

impl ArrayWriter {
    /// Creates an array of these values.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub(super) fn of<'a, 'v>(values: impl IntoIterator<Item = Value<'a>>) -> Result<Evaluated<'v>> {
        let mut array = Self::default();
        values.into_iter().for_each(|value| array.push(value));
        array.finish()
    }

    pub(super) fn push(&mut self, value: Value<'_>) {
        self.elements.append(crate::raw::digits(self.length).as_bytes(), value);
        self.length += 1;
    }

    /// Fails as [`DocumentWriter::check`] does.
    #[inline]
    pub(super) fn check(&self) -> Result<()> {
        self.elements.check()
    }

    /// Returns the array. Fails as [`check`](Self::check) does.
    pub(super) fn finish<'v>(self) -> Result<Evaluated<'v>> {
        self.elements.finish(Kind::Array)
    }
}
