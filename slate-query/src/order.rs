//! BSON's order of values, as MongoDB defines it.
//!
//! Values of different classes compare by class, values of one class by value. The encoded keys of [`crate::key`] sort in
//! the same order.

use std::cmp::Ordering;

use crate::{
    number::Number,
    raw::{Doc, Elements, Kind, Value, same},
    work,
};

/// A class of types. Values of one class are compared by value, and a predicate such as `$gt` matches only values of its
/// operand's class ("type bracketing"). The variants are in BSON's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "each variant is named for the types it holds")]
pub enum Bracket {
    MinKey,
    Undefined,
    Null,
    /// Double, int32, int64 and decimal128.
    Number,
    /// String and symbol.
    String,
    Document,
    Array,
    Binary,
    ObjectId,
    Boolean,
    Date,
    Timestamp,
    Regex,
    DbPointer,
    Code,
    CodeWithScope,
    MaxKey,
}

/// Returns the class that a type belongs to.
#[inline]
pub fn bracket(kind: Kind) -> Bracket {
    match kind {
        Kind::MinKey => Bracket::MinKey,
        Kind::Undefined => Bracket::Undefined,
        Kind::Null => Bracket::Null,
        Kind::Double | Kind::Int32 | Kind::Int64 | Kind::Decimal128 => Bracket::Number,
        Kind::String | Kind::Symbol => Bracket::String,
        Kind::Document => Bracket::Document,
        Kind::Array => Bracket::Array,
        Kind::Binary => Bracket::Binary,
        Kind::ObjectId => Bracket::ObjectId,
        Kind::Boolean => Bracket::Boolean,
        Kind::DateTime => Bracket::Date,
        Kind::Timestamp => Bracket::Timestamp,
        Kind::Regex => Bracket::Regex,
        Kind::DbPointer => Bracket::DbPointer,
        Kind::Code => Bracket::Code,
        Kind::CodeWithScope => Bracket::CodeWithScope,
        Kind::MaxKey => Bracket::MaxKey,
    }
}

/// Compares two values in BSON's order, which is total. Numbers of different types are equal if they are mathematically
/// equal, NaN is equal to itself and lower than all other numbers, and a symbol equals the string of the same text.
///
/// The recursion is as deep as the values nest, which [`crate::raw::validate`] bounds.
#[inline]
pub fn compare(a: Value<'_>, b: Value<'_>) -> Ordering {
    match (a.kind(), b.kind()) {
        (Kind::Int32, Kind::Int32) => a.as_i32().cmp(&b.as_i32()),
        (Kind::DateTime, Kind::DateTime) => a.as_millis().cmp(&b.as_millis()),
        (Kind::String, Kind::String) => a.text().cmp(&b.text()),
        (_, _) => compare_any(a, b),
    }
}

fn compare_any(a: Value<'_>, b: Value<'_>) -> Ordering {
    work::did(1);
    let class = bracket(a.kind());
    class.cmp(&bracket(b.kind())).then_with(|| within(class, a, b))
}

/// Returns whether two values are equal in BSON's order; see [`compare`]. Compares their bytes where that is enough.
#[inline]
pub fn equal(a: Value<'_>, b: Value<'_>) -> bool {
    work::did(1);
    if a.kind() == b.kind() {
        same(a.bytes(), b.bytes()) || !equal_by_bytes(a.kind()) && compare(a, b) == Ordering::Equal
    } else {
        bracket(a.kind()) == bracket(b.kind()) && compare(a, b) == Ordering::Equal
    }
}

/// Returns whether equal values of the type always have equal bytes.
#[inline]
pub(crate) fn equal_by_bytes(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::String
            | Kind::ObjectId
            | Kind::Boolean
            | Kind::DateTime
            | Kind::Int32
            | Kind::Int64
            | Kind::Timestamp
            | Kind::Symbol
            | Kind::Code
    )
}

/// Compares two documents: element by element, by class, then name, then value.
pub fn compare_documents(a: Doc<'_>, b: Doc<'_>) -> Ordering {
    count(a, b);
    let (mut left, mut right) = (a.elements(), b.elements());
    loop {
        let (a, b) = match step(&mut left, &mut right) {
            Ok(pair) => pair,
            Err(end) => return end,
        };
        let class = bracket(a.value.kind());
        let order = class
            .cmp(&bracket(b.value.kind()))
            .then_with(|| a.name.cmp(b.name))
            .then_with(|| within(class, a.value, b.value));
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// Counts the elements that the comparison may read.
#[inline]
fn count(a: Doc<'_>, b: Doc<'_>) {
    work::spend(work::of_bytes(a.bytes().len().min(b.bytes().len())));
}

/// Compares two arrays element by element. Their elements' names do not count.
fn compare_arrays(a: Doc<'_>, b: Doc<'_>) -> Ordering {
    count(a, b);
    let (mut left, mut right) = (a.elements(), b.elements());
    loop {
        let order = match step(&mut left, &mut right) {
            Ok((a, b)) => compare(a.value, b.value),
            Err(end) => return end,
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// Returns the next elements of `left` and `right`, or the order of the two if one of them has ended.
fn step<'a, 'b>(
    left: &mut Elements<'a>,
    right: &mut Elements<'b>,
) -> Result<(crate::raw::Element<'a>, crate::raw::Element<'b>), Ordering> {
    match (left.next(), right.next()) {
        (Some(a), Some(b)) => Ok((a, b)),
        (a, b) => Err(a.is_some().cmp(&b.is_some())),
    }
}

/// Compares two values of one class.
fn within(class: Bracket, a: Value<'_>, b: Value<'_>) -> Ordering {
    match class {
        Bracket::MinKey | Bracket::Undefined | Bracket::Null | Bracket::MaxKey => Ordering::Equal,
        Bracket::Number => Number::of(a).cmp(&Number::of(b)),
        Bracket::String | Bracket::Code => a.text().cmp(&b.text()),
        Bracket::Document => compare_documents(Doc::new(a.bytes()), Doc::new(b.bytes())),
        Bracket::Array => compare_arrays(Doc::new(a.bytes()), Doc::new(b.bytes())),
        Bracket::Binary => {
            // After the length: the subtype, then the payload.
            let (a, b) = (a.bytes().get(4..), b.bytes().get(4..));
            a.map(<[u8]>::len).cmp(&b.map(<[u8]>::len)).then_with(|| a.cmp(&b))
        }
        Bracket::ObjectId => a.bytes().cmp(b.bytes()),
        Bracket::Boolean => a.as_bool().cmp(&b.as_bool()),
        Bracket::Date => a.as_millis().cmp(&b.as_millis()),
        Bracket::Timestamp => a.as_timestamp().cmp(&b.as_timestamp()),
        Bracket::Regex => a.as_regex().cmp(&b.as_regex()),
        Bracket::DbPointer => {
            let (a, b) = (a.bytes(), b.bytes());
            a.len().cmp(&b.len()).then_with(|| a.cmp(b))
        }
        Bracket::CodeWithScope => match (a.as_code_with_scope(), b.as_code_with_scope()) {
            (Some((a, left)), Some((b, right))) => a.cmp(b).then_with(|| compare_documents(left, right)),
            (a, b) => a.is_some().cmp(&b.is_some()),
        },
    }
}
