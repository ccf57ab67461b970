//! `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte` and `$cmp`, in BSON's order. A missing value is lower than null.

use std::cmp::Ordering;

use super::super::{Evaluated, arguments::Arguments};
use crate::{Result, order, raw::Kind};

fn compare(arguments: &Arguments<'_, '_>) -> Ordering {
    compared(arguments.get(0), arguments.get(1))
}

/// Returns the order of two values. Undefined is treated as missing here, as in MongoDB.
pub(super) fn compared(left: &Evaluated<'_>, right: &Evaluated<'_>) -> Ordering {
    let value = |operand: &'_ Evaluated<'_>| operand.as_value().map(|value| value.kind());
    match (left.as_value(), right.as_value()) {
        (Some(a), Some(b)) => order::compare(a, b),
        (None, None) => Ordering::Equal,
        (None, Some(_)) if value(right) == Some(Kind::MinKey) => Ordering::Greater,
        (Some(_), None) if value(left) == Some(Kind::MinKey) => Ordering::Less,
        (None, Some(_)) => Ordering::Less,
        (Some(_), None) => Ordering::Greater,
    }
}

macro_rules! comparisons {
    ($($name:ident = $holds:expr;)+) => {
        $(pub(super) fn $name<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
            let holds: fn(Ordering) -> bool = $holds;
            Ok(holds(compare(&arguments)).into())
        })+
    };
}

comparisons! {
    eq = Ordering::is_eq;
    ne = Ordering::is_ne;
    gt = Ordering::is_gt;
    gte = Ordering::is_ge;
    lt = Ordering::is_lt;
    lte = Ordering::is_le;
}

pub(super) fn cmp<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    Ok(Evaluated::int32(compare(&arguments) as i32))
}
