//! What the key bytes lost, as a list of exceptions.
//!
//! Every value that key bytes leave open (a number, a string, a null, an array) is a place, counted in the order of the
//! key. A place where the likeliest reading holds costs nothing; at another stands an exception: how many places it
//! comes after the last one, and a code.

/// Codes of exceptions; they take a byte's low half. In the high half: the number of places passed since the last
/// exception, or [`MANY`].
pub(super) mod code {
    /// Ends the exceptions of an entry's values; those of its `_id` follow.
    pub(crate) const END: u8 = 0;
    /// Null stands for a missing field.
    pub(crate) const MISSING: u8 = 1;
    /// Symbol, not string.
    pub(crate) const SYMBOL: u8 = 2;
    /// Int64 within the range of int32, or -2^63.
    pub(crate) const INT64: u8 = 3;
    /// Double where an integer is likelier.
    pub(crate) const DOUBLE: u8 = 4;
    /// -0.0.
    pub(crate) const NEGATIVE_ZERO: u8 = 5;
    /// Decimal128, and a byte: how many zeros end its coefficient.
    pub(crate) const DECIMAL: u8 = 6;
    /// A decimal128 zero, and two bytes: its sign (the highest bit) and its biased exponent.
    pub(crate) const DECIMAL_ZERO: u8 = 7;
    /// The value itself: type byte, length, bytes.
    pub(crate) const RAW: u8 = 8;
}

/// In a head's high half: fifteen places or more were passed; how many more, follows as a varint.
const MANY: usize = 15;

use crate::raw::Value;

/// What key bytes lost, to be kept beside them. Empty for keys of the commonest types.
#[derive(Clone, Debug, Default)]
pub struct TypeBits {
    bytes: Vec<u8>,
    passed: usize,
}

impl TypeBits {
    /// For a new key.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts over, for another key; the buffer is kept.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.passed = 0;
    }

    /// What to store.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether there is nothing to store.
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

/// Where encoding notes what it loses.
pub(super) trait Losses {
    /// A place where the likeliest reading holds.
    fn keep(&mut self);
    /// A place with an exception, and what follows its head.
    fn except(&mut self, code: u8, payload: &[u8]);
    /// A place whose value must be kept whole.
    fn raw(&mut self, value: Value<'_>);
    /// Whether anything is noted at all.
    const NOTED: bool;
}

impl Losses for TypeBits {
    const NOTED: bool = true;

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

/// Notes nothing.
pub(super) struct Forget;

impl Losses for Forget {
    const NOTED: bool = false;

    #[inline]
    fn keep(&mut self) {}

    #[inline]
    fn except(&mut self, _: u8, _: &[u8]) {}

    #[inline]
    fn raw(&mut self, _: Value<'_>) {}
}

/// Appends to `out` the type bits of an entry: those of its values, then those of its `_id`.
pub fn join(values: &[u8], id: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(values);
    if !id.is_empty() {
        out.push(code::END);
        out.extend_from_slice(id);
    }
}

/// Reads type bits, in step with the decoding of the key they belong to.
#[derive(Clone, Debug)]
pub struct TypeReader<'a> {
    rest: &'a [u8],
    /// How many places the next exception is away, and its code; `None` where none is left in this part.
    next: Option<(usize, u8)>,
}

impl<'a> TypeReader<'a> {
    /// A reader of stored type bits.
    #[inline]
    pub fn new(mut bits: &'a [u8]) -> Self {
        let next = head(&mut bits);
        Self { rest: bits, next }
    }

    /// Goes on to the next part of joined bits: from an entry's values to its `_id`, whose bits it gives back. Every value
    /// of the part before must have been decoded; damaged bits are read as none.
    pub fn next_part(&mut self) -> &'a [u8] {
        let part = if let [code::END, part @ ..] = self.rest { part } else { &[] };
        self.rest = part;
        self.next = head(&mut self.rest);
        part
    }

    /// The exception at the next place, if there is one there. Its payload is the caller's to take.
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

    /// To be called after an exception's payload was taken.
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

/// The next exception's distance and code. An end is left standing.
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

/// Seven bits to a byte, the lowest first; the high bit says that more follow.
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
