//! Type bits: the information that the encoding of a key loses, as a list of exceptions.
//!
//! Every value whose encoding is ambiguous (a number, a string, a null, an array) has a position, counted in the order
//! of the key. A position with the most likely interpretation is not stored. Any other position is stored as an
//! exception: its distance from the previous exception, and a code.

/// Codes of exceptions, in the low half of a byte. The high half contains the number of positions since the previous
/// exception, or [`MANY`].
pub(super) mod code {
    /// Ends the exceptions of an entry's values; those of its `_id` follow.
    pub(crate) const END: u8 = 0;
    /// The field is missing, not null.
    pub(crate) const MISSING: u8 = 1;
    /// A symbol, not a string.
    pub(crate) const SYMBOL: u8 = 2;
    /// An int64 within the range of int32, or -2^63.
    pub(crate) const INT64: u8 = 3;
    /// A double where an integer is more likely.
    pub(crate) const DOUBLE: u8 = 4;
    /// -0.0.
    pub(crate) const NEGATIVE_ZERO: u8 = 5;
    /// A decimal128. A byte follows: the number of zeros at the end of its coefficient.
    pub(crate) const DECIMAL: u8 = 6;
    /// A decimal128 zero. Two bytes follow: its sign (the highest bit) and its biased exponent.
    pub(crate) const DECIMAL_ZERO: u8 = 7;
    /// The value itself follows: type byte, length, bytes.
    pub(crate) const RAW: u8 = 8;
}

/// The high half of an exception's first byte if fifteen positions or more precede it. The excess follows as a varint.
const MANY: usize = 15;

use crate::raw::Value;

/// The type bits of a key, which are stored in the entry's value. Empty for keys of the most common types.
#[derive(Clone, Debug, Default)]
pub struct TypeBits {
    bytes: Vec<u8>,
    passed: usize,
}

impl TypeBits {
    /// Returns the type bits of a new key.
    pub fn new() -> Self {
        Self::default()
    }

    /// Clears the bits for another key and keeps the buffer.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.passed = 0;
    }

    /// Returns the bytes to store.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns whether there is nothing to store: every value has the most likely type for its key.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    fn head(&mut self, code: u8) {
        let passed = std::mem::take(&mut self.passed);
        let high = u8::try_from(passed.min(MANY)).unwrap_or_default();
        self.bytes.push(high << 4 | code);
        if passed >= MANY {
            varint(passed - MANY, &mut self.bytes);
        }
    }
}

/// Receives what encoding loses.
pub(super) trait Losses {
    /// Records that the next value has the most likely interpretation.
    fn keep(&mut self);
    /// Records that the next value has another one: its code, and the bytes that follow the head.
    fn except(&mut self, code: u8, payload: &[u8]);
    /// Records that the next value cannot be restored from its key and is stored as a whole.
    fn raw(&mut self, value: Value<'_>);
    /// Whether this implementation records anything.
    const RECORDS: bool;
}

impl Losses for TypeBits {
    const RECORDS: bool = true;

    #[inline]
    fn keep(&mut self) {
        self.passed += 1;
    }

    fn except(&mut self, code: u8, payload: &[u8]) {
        self.head(code);
        self.bytes.extend_from_slice(payload);
    }

    fn raw(&mut self, value: Value<'_>) {
        self.head(code::RAW);
        self.bytes.push(value.kind().byte());
        varint(value.bytes().len(), &mut self.bytes);
        self.bytes.extend_from_slice(value.bytes());
    }
}

/// Records nothing.
pub(super) struct Forget;

impl Losses for Forget {
    const RECORDS: bool = false;

    #[inline]
    fn keep(&mut self) {}

    #[inline]
    fn except(&mut self, _: u8, _: &[u8]) {}

    #[inline]
    fn raw(&mut self, _: Value<'_>) {}
}

/// Appends the type bits of an index entry to `out`: those of its values, then those of its `_id`.
pub fn join(values: &[u8], id: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(values);
    if !id.is_empty() {
        out.push(code::END);
        out.extend_from_slice(id);
    }
}

/// Reads type bits while the key that they belong to is decoded.
#[derive(Clone, Debug)]
pub struct TypeReader<'a> {
    rest: &'a [u8],
    /// How many positions come before the next exception, and its code. `None` if none is left in this part.
    next: Option<(usize, u8)>,
}

impl<'a> TypeReader<'a> {
    /// Reads stored type bits.
    #[inline]
    pub fn new(mut bits: &'a [u8]) -> Self {
        let next = head(&mut bits);
        Self { rest: bits, next }
    }

    /// Continues with the next part of joined bits, from an entry's values to its `_id`, and returns the bytes of that
    /// part. Every value of the previous part must have been decoded. Damaged bits are read as no exceptions.
    pub fn next_part(&mut self) -> &'a [u8] {
        let part = if let [code::END, part @ ..] = self.rest { part } else { &[] };
        self.rest = part;
        self.next = head(&mut self.rest);
        part
    }

    /// Returns the exception at the next position, if there is one. The caller reads its payload.
    #[inline]
    pub(super) fn place(&mut self) -> Option<u8> {
        match self.next {
            None => None,
            Some((0, code)) => {
                self.next = None;
                Some(code)
            }
            Some((passed, code)) => {
                self.next = Some((passed - 1, code));
                None
            }
        }
    }

    /// Moves to the next exception. Must be called after an exception's payload was read.
    pub(super) fn done(&mut self) {
        self.next = head(&mut self.rest);
    }

    pub(super) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    pub(super) fn take_varint(&mut self) -> Option<usize> {
        read_varint(&mut self.rest)
    }
}

/// Returns the distance and the code of the next exception; `None` at the end of a part, which is not consumed.
#[inline]
fn head(rest: &mut &[u8]) -> Option<(usize, u8)> {
    let (&first, mut tail) = rest.split_first()?;
    if first == code::END {
        return None;
    }
    let mut passed = usize::from(first >> 4);
    if passed == MANY {
        passed = passed.checked_add(read_varint(&mut tail)?)?;
    }
    *rest = tail;
    Some((passed, first & 0x0f))
}

/// Appends a varint: seven bits per byte, lowest first. The high bit says that more bytes follow.
fn varint(mut value: usize, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(u8::try_from(value & 0x7f).unwrap_or_default() | 0x80);
        value >>= 7;
    }
    out.push(u8::try_from(value).unwrap_or_default());
}

fn read_varint(rest: &mut &[u8]) -> Option<usize> {
    let mut value = 0_usize;
    for shift in (0..usize::BITS).step_by(7) {
        let (&byte, tail) = rest.split_first()?;
        *rest = tail;
        let part = usize::from(byte & 0x7f);
        value |= part.checked_shl(shift).filter(|shifted| shifted >> shift == part)?;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}
