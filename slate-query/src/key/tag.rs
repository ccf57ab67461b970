//! The first byte of an encoded value, in the order of the values. All tags, and their inversions, are within
//! 0x02..=0xfd.

use crate::order::Bracket;

/// Ends a text, a document's elements or an array's elements. Lower than anything that can be in its place.
pub(crate) const END: u8 = 0x01;
/// Starts an escaped byte of a text.
pub(crate) const ESCAPE: u8 = 0x02;

pub(crate) const MIN_KEY: u8 = 0x08;
pub(crate) const UNDEFINED: u8 = 0x10;
pub(crate) const NULL: u8 = 0x18;
pub(crate) const NAN: u8 = 0x20;
/// The tags of numbers are symmetric around zero: `ZERO + n` and `ZERO - n`.
pub(crate) const ZERO: u8 = 0x2c;
/// The distance from [`ZERO`] of the tags of numbers with a magnitude below 1.
pub(crate) const SMALL: u8 = 1;
/// The tag of a number with a magnitude from 1 to 2^63 (exclusive) is at this distance plus the number of bytes (1 to
/// 8) from [`ZERO`].
pub(crate) const WHOLE: u8 = 1;
/// The distance from [`ZERO`] of the tags of numbers with a magnitude of 2^63 or above.
pub(crate) const BIG: u8 = 10;
/// The distance from [`ZERO`] of the tags of infinities.
pub(crate) const INFINITE: u8 = 11;
pub(crate) const STRING: u8 = 0x40;
pub(crate) const DOCUMENT: u8 = 0x48;
pub(crate) const ARRAY: u8 = 0x50;
pub(crate) const BINARY: u8 = 0x58;
pub(crate) const OBJECT_ID: u8 = 0x60;
pub(crate) const FALSE: u8 = 0x68;
pub(crate) const TRUE: u8 = 0x69;
pub(crate) const DATE: u8 = 0x70;
pub(crate) const TIMESTAMP: u8 = 0x78;
pub(crate) const REGEX: u8 = 0x80;
pub(crate) const DB_POINTER: u8 = 0x88;
pub(crate) const CODE: u8 = 0x90;
pub(crate) const CODE_WITH_SCOPE: u8 = 0x98;
pub(crate) const MAX_KEY: u8 = 0xa0;

/// Returns the lowest and the highest tag of a class. The lowest also represents the class in a document's elements.
#[inline]
pub(crate) fn of(bracket: Bracket) -> (u8, u8) {
    match bracket {
        Bracket::MinKey => (MIN_KEY, MIN_KEY),
        Bracket::Undefined => (UNDEFINED, UNDEFINED),
        Bracket::Null => (NULL, NULL),
        Bracket::Number => (NAN, ZERO + INFINITE),
        Bracket::String => (STRING, STRING),
        Bracket::Document => (DOCUMENT, DOCUMENT),
        Bracket::Array => (ARRAY, ARRAY),
        Bracket::Binary => (BINARY, BINARY),
        Bracket::ObjectId => (OBJECT_ID, OBJECT_ID),
        Bracket::Boolean => (FALSE, TRUE),
        Bracket::Date => (DATE, DATE),
        Bracket::Timestamp => (TIMESTAMP, TIMESTAMP),
        Bracket::Regex => (REGEX, REGEX),
        Bracket::DbPointer => (DB_POINTER, DB_POINTER),
        Bracket::Code => (CODE, CODE),
        Bracket::CodeWithScope => (CODE_WITH_SCOPE, CODE_WITH_SCOPE),
        Bracket::MaxKey => (MAX_KEY, MAX_KEY),
    }
}
