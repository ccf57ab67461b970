use std::fmt;

use super::{Doc, Kind, SmallBytes, kind};
use crate::work;

/// A borrowed BSON value: its type and its encoded bytes. Nothing is decoded until an accessor is called. Accessors return `None` for a value of
/// another type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Value<'a> {
    kind: Kind,
    bytes: &'a [u8],
}

impl<'a> Value<'a> {
    /// BSON null.
    pub const NULL: Value<'static> = Value { kind: Kind::Null, bytes: &[] };
    /// BSON undefined.
    pub const UNDEFINED: Value<'static> = Value { kind: Kind::Undefined, bytes: &[] };

    /// Creates a value of `kind` from its encoded bytes; see [`Value::measure`]. The accessors of a value with invalid
    /// bytes return `None`.
    #[inline]
    pub fn new(kind: Kind, bytes: &'a [u8]) -> Self {
        Self { kind, bytes }
    }

    /// Returns the size of a value of `kind` at the start of `rest`; `None` if `rest` does not contain one.
    #[inline]
    pub fn measure(kind: Kind, rest: &[u8]) -> Option<usize> {
        kind::measure(kind.byte(), rest)
    }

    /// Returns the value's type.
    #[inline]
    pub fn kind(self) -> Kind {
        self.kind
    }

    /// Returns whether the value is null or undefined.
    #[inline]
    pub fn is_nullish(self) -> bool {
        matches!(self.kind, Kind::Null | Kind::Undefined)
    }

    /// Returns the value's encoded bytes, without its type and name.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the text of a string, symbol or code as UTF-8 bytes, without length and terminator.
    #[inline]
    pub fn text(self) -> Option<&'a [u8]> {
        match self.kind {
            Kind::String | Kind::Symbol | Kind::Code => self.bytes.get(4..self.bytes.len().checked_sub(1)?),
            _ => None,
        }
    }

    /// Returns the text of a string or symbol as UTF-8 bytes: what collations and regular expressions apply to. Code is no string.
    #[inline]
    pub fn string(self) -> Option<&'a [u8]> {
        if self.kind == Kind::Code { None } else { self.text() }
    }

    /// Returns the text of a string.
    pub fn as_str(self) -> Option<&'a str> {
        (self.kind == Kind::String).then(|| self.text().and_then(|text| std::str::from_utf8(text).ok())).flatten()
    }

    /// Returns the value of an int32.
    #[inline]
    pub fn as_i32(self) -> Option<i32> {
        (self.kind == Kind::Int32).then(|| self.bytes.try_into().ok().map(i32::from_le_bytes)).flatten()
    }

    /// Returns the value of an int64.
    #[inline]
    pub fn as_i64(self) -> Option<i64> {
        (self.kind == Kind::Int64).then(|| self.bytes.try_into().ok().map(i64::from_le_bytes)).flatten()
    }

    /// Returns the value of a double.
    #[inline]
    pub fn as_f64(self) -> Option<f64> {
        (self.kind == Kind::Double).then(|| self.bytes.try_into().ok().map(f64::from_le_bytes)).flatten()
    }

    /// Returns the sixteen bytes of a decimal128, little-endian, in the binary-integer encoding.
    #[inline]
    pub fn as_decimal(self) -> Option<[u8; 16]> {
        (self.kind == Kind::Decimal128).then(|| self.bytes.try_into().ok()).flatten()
    }

    /// Returns the value of a boolean.
    #[inline]
    pub fn as_bool(self) -> Option<bool> {
        (self.kind == Kind::Boolean).then(|| self.bytes.first().map(|&byte| byte != 0)).flatten()
    }

    /// Returns the milliseconds since 1970 of a date.
    #[inline]
    pub fn as_millis(self) -> Option<i64> {
        (self.kind == Kind::DateTime).then(|| self.bytes.try_into().ok().map(i64::from_le_bytes)).flatten()
    }

    /// Returns the value of a timestamp: seconds in the high half, increment in the low half.
    #[inline]
    pub fn as_timestamp(self) -> Option<u64> {
        (self.kind == Kind::Timestamp).then(|| self.bytes.try_into().ok().map(u64::from_le_bytes)).flatten()
    }

    /// Returns the twelve bytes of an ObjectId.
    #[inline]
    pub fn as_object_id(self) -> Option<[u8; 12]> {
        (self.kind == Kind::ObjectId).then(|| self.bytes.try_into().ok()).flatten()
    }

    /// Returns a document's content.
    #[inline]
    pub fn as_document(self) -> Option<Doc<'a>> {
        (self.kind == Kind::Document).then(|| Doc::new(self.bytes))
    }

    /// Returns an array's content, as a document.
    #[inline]
    pub fn as_array(self) -> Option<Doc<'a>> {
        (self.kind == Kind::Array).then(|| Doc::new(self.bytes))
    }

    /// Returns the content of a document or an array.
    #[inline]
    pub fn as_container(self) -> Option<Doc<'a>> {
        matches!(self.kind, Kind::Document | Kind::Array).then(|| Doc::new(self.bytes))
    }

    /// Returns whether documents, arrays and scopes nest more than `levels` deep in the value, which counts as the first level if it is one of them.
    /// Recurses at most `levels` deep, so the value need not be validated. `true` if the call ends meanwhile, so that the caller does not recurse
    /// over the value.
    pub fn is_deeper_than(self, levels: usize) -> bool {
        // An empty document takes 5 bytes, and one around it 7 more.
        const EMPTY: usize = 5;
        const AROUND: usize = 7;
        let container = match self.kind {
            Kind::CodeWithScope => self.as_code_with_scope().map(|(_, scope)| scope),
            _ => self.as_container(),
        };
        match container {
            Some(container) if self.bytes.len() >= EMPTY + AROUND * levels => {
                // Each level is counted: a document of many large parts takes long.
                levels == 0
                    || !work::spend(work::of_bytes(container.bytes().len()) / 4)
                    || container.values().any(|inner| inner.is_deeper_than(levels - 1))
            }
            _ => false,
        }
    }

    /// Returns the subtype and the payload of a binary. The payload of the obsolete subtype 2 includes the inner
    /// length.
    pub fn as_binary(self) -> Option<(u8, &'a [u8])> {
        match (self.kind, self.bytes) {
            (Kind::Binary, [_, _, _, _, subtype, payload @ ..]) => Some((*subtype, payload)),
            _ => None,
        }
    }

    /// Returns the pattern and the options of a regular expression, as UTF-8 bytes.
    pub fn as_regex(self) -> Option<(&'a [u8], &'a [u8])> {
        if self.kind != Kind::Regex {
            return None;
        }
        let mut parts = self.bytes.split(|&byte| byte == 0);
        Some((parts.next()?, parts.next()?))
    }

    /// Returns the text and the scope of a code with scope.
    pub fn as_code_with_scope(self) -> Option<(&'a [u8], Doc<'a>)> {
        if self.kind != Kind::CodeWithScope {
            return None;
        }
        let rest = self.bytes.get(4..)?;
        let end = length(rest)?.checked_add(4)?;
        Some((rest.get(4..end.checked_sub(1)?)?, Doc::new(rest.get(end..)?)))
    }

    /// Returns the namespace and the id of a DBPointer.
    pub fn as_db_pointer(self) -> Option<(&'a [u8], [u8; 12])> {
        if self.kind != Kind::DbPointer {
            return None;
        }
        let end = length(self.bytes)?.checked_add(4)?;
        Some((self.bytes.get(4..end.checked_sub(1)?)?, self.bytes.get(end..)?.try_into().ok()?))
    }

    /// Copies the value.
    pub fn to_owned(self) -> OwnedValue {
        OwnedValue { kind: self.kind, bytes: self.bytes.into() }
    }
}

/// A value that owns its bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct OwnedValue {
    pub(super) kind: Kind,
    pub(super) bytes: SmallBytes,
}

impl OwnedValue {
    /// Borrows the value.
    #[inline]
    pub fn as_value(&self) -> Value<'_> {
        Value { kind: self.kind, bytes: &self.bytes }
    }

    /// Creates a value of `kind` from the concatenation of `parts`.
    pub(crate) fn concat(kind: Kind, parts: &[&[u8]]) -> Self {
        Self { kind, bytes: SmallBytes::concat(parts) }
    }

    /// Returns the bytes that the value takes on the heap.
    #[inline]
    pub(crate) fn heap_bytes(&self) -> usize {
        self.bytes.heap_bytes()
    }
}

/// Formats the value as relaxed extended JSON.
impl fmt::Display for OwnedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.as_value(), f)
    }
}

impl fmt::Debug for OwnedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_value().fmt(f)
    }
}

/// Reads a little-endian length prefix.
#[inline]
pub(super) fn length(bytes: &[u8]) -> Option<usize> {
    let (head, _) = bytes.split_first_chunk::<4>()?;
    usize::try_from(i32::from_le_bytes(*head)).ok()
}
