//! `$toHashedIndexKey`: the hash by which MongoDB distributes documents in hashed indexes.
//!
//! The hash is the first half of an MD5 digest of the value: the rank of its type, then the bytes of the value. A document or array
//! contributes, in place of its bytes, each of its fields in the same way. Numbers are hashed as 64-bit integers, so 2, 2.0 and 2.9
//! have the same hash.

use md5::{Digest, Md5};

use super::super::{Evaluated, arguments::Arguments};
use crate::{
    Result,
    number::{Number, TWO_63},
    order::{Bracket, bracket},
    raw::{Doc, Kind, Value},
};

/// MongoDB's seed.
const SEED: i32 = 0;

pub(super) fn to_hashed_index_key<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let mut md5 = Md5::new();
    md5.update(SEED.to_le_bytes());
    add(&mut md5, None, arguments.get(0).or_null());
    let digest = md5.finalize();
    let first = digest.first_chunk().copied().unwrap_or_default();
    Ok(Evaluated::int64(i64::from_le_bytes(first)))
}

/// Adds a value, and its name within a document or array.
///
/// The recursion is as deep as the values nest, which [`crate::raw::validate`] bounds.
fn add(md5: &mut Md5, name: Option<&[u8]>, value: Value<'_>) {
    md5.update(rank(value.kind()).to_le_bytes());
    if let Some(name) = name {
        md5.update(name);
        md5.update([0]);
    }
    if let Some(number) = Number::of(value) {
        md5.update(integer(number).to_le_bytes());
    } else if let Some(container) = value.as_container() {
        add_fields(md5, container);
    } else if let Some((code, scope)) = value.as_code_with_scope() {
        md5.update(code);
        md5.update([0]);
        add_fields(md5, scope);
    } else {
        md5.update(value.bytes());
    }
}

fn add_fields(md5: &mut Md5, document: Doc<'_>) {
    for element in document.elements() {
        add(md5, Some(element.name), element.value);
    }
    // The end of a document is hashed as a value with a type of its own and without a name.
    md5.update(END.to_le_bytes());
}

/// Returns the integer by which a number is hashed.
fn integer(number: Number) -> i64 {
    match number {
        // MongoDB's hash of 2^63 as a double, which its old indexes contain.
        Number::Double(double) if double == TWO_63 => i64::MIN,
        _ => number.to_i64_saturating(),
    }
}

/// MongoDB's rank of the end of a document.
const END: i32 = 0;

/// Returns MongoDB's rank of a type, which is the same for types that are compared by value.
fn rank(kind: Kind) -> i32 {
    match bracket(kind) {
        Bracket::MinKey => -1,
        Bracket::Undefined => 0,
        Bracket::Null => 5,
        Bracket::Number => 10,
        Bracket::String => 15,
        Bracket::Document => 20,
        Bracket::Array => 25,
        Bracket::Binary => 30,
        Bracket::ObjectId => 35,
        Bracket::Boolean => 40,
        Bracket::Date => 45,
        Bracket::Timestamp => 47,
        Bracket::Regex => 50,
        Bracket::DbPointer => 55,
        Bracket::Code => 60,
        Bracket::CodeWithScope => 65,
        Bracket::MaxKey => 127,
    }
}
