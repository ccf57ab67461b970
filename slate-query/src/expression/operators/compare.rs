//! `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte` and `$cmp`, in BSON's order. A missing value equals undefined, which is lower
//! than null and greater than the smallest key.

use std::cmp::Ordering;

use super::super::{Evaluated, arguments::Arguments};
use crate::{Result, order, raw::Value};

/// Returns the order of the two operands.
fn compare(arguments: &Arguments<'_, '_>) -> Ordering {
    // BSON's order has no missing value, so undefined is compared instead.
    let operand = |place| arguments.get(place).as_value().unwrap_or(Value::UNDEFINED);
    order::compare(operand(0), operand(1))
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
