use crate::{
    Code, Error, Result,
    raw::{Kind, MAX_DEPTH, OwnedValue, Value, Writer},
    work,
};

/// The most bytes of a computed value. The documents that it is computed from have at most 16 MiB.
pub(super) const MOST_BYTES: usize = 64 << 20;

/// # Errors
/// 10334 for a computed value of more than [`MOST_BYTES`].
pub(crate) fn check_size(bytes: usize) -> Result<()> {
    if bytes <= MOST_BYTES {
        return Ok(());
    }
    Err(Error::new(Code(10334), "an expression has a value of more than 64 MiB"))
}

/// # Errors
/// `Overflow` (15) for a computed value that nests deeper than a document may: functions of the engine recurse into values.
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
        let bytes = [&length.to_le_bytes(), text.as_bytes(), &[0]].concat();
        Self::of(Kind::String, &bytes)
    }

    /// Creates a document that a writer has written.
    pub(super) fn document(writer: Writer) -> Self {
        Self::of(Kind::Document, &writer.finish())
    }

    /// Creates an array of these values. Missing values become null.
    pub(super) fn array<'a>(values: impl IntoIterator<Item = Value<'a>>) -> Self {
        let mut array = ArrayWriter::default();
        values.into_iter().for_each(|value| array.push(value));
        array.finish()
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

/// Writes an array value by value. An array that exceeds [`MOST_BYTES`] does not grow further; it is refused where the
/// expression that computed it returns it.
#[derive(Debug, Default)]
pub(super) struct ArrayWriter {
    writer: Writer,
    length: usize,
    bytes: usize,
}

impl ArrayWriter {
    pub(super) fn push(&mut self, value: Value<'_>) {
        if self.bytes > MOST_BYTES || !work::spend(1 + value.bytes().len() / 256) {
            return;
        }
        self.writer.append(crate::raw::digits(self.length).as_bytes(), value);
        self.length += 1;
        self.bytes += value.bytes().len() + 2;
    }

    /// # Errors
    /// As [`check_size`], so that no further values are computed.
    pub(super) fn check(&self) -> Result<()> {
        check_size(self.bytes)
    }

    pub(super) fn finish<'v>(self) -> Evaluated<'v> {
        Evaluated::of(Kind::Array, &self.writer.finish())
    }
}
