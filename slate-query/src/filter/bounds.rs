//! The index key ranges of operators.

use crate::{
    interval::{self, Interval, IntervalSet},
    key,
    order::{Bracket, bracket},
    raw::{Kind, SmallBytes, Value},
};

/// Whether every index entry within a condition's bounds belongs to a document that satisfies the condition, so that
/// the condition need not be evaluated again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exactness {
    /// Bounds are not exact.
    Never,
    /// Bounds are exact if no document of the index has an array on the index's path.
    WhereNotMultikey,
    /// Bounds are exact.
    Always,
}

/// The index keys of the values that satisfy an operator; see [`super::operator::Operator::bounds`].
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    pub(super) intervals: IntervalSet,
    /// `Always`: a value whose key is within the intervals satisfies the operator.
    pub(super) exact: Exactness,
}

impl Bounds {
    /// Returns the bounds of an operator that can match any value.
    pub(super) fn unknown() -> Self {
        Self::loose(IntervalSet::all())
    }

    pub(super) fn exact(intervals: impl Into<IntervalSet>) -> Self {
        Self { intervals: intervals.into(), exact: Exactness::Always }
    }

    pub(super) fn loose(intervals: impl Into<IntervalSet>) -> Self {
        Self { intervals: intervals.into(), exact: Exactness::Never }
    }

    /// Returns the bounds of values that satisfy either condition.
    pub(super) fn or(self, other: Self) -> Self {
        Self { intervals: self.intervals.union(&other.intervals), exact: self.exact.min(other.exact) }
    }

    /// Returns the bounds of values that are equal to `value`. Arrays that are equal to it have an entry for their
    /// first element.
    pub(super) fn equal(value: Value<'_>) -> Self {
        if let Some(key) = only_key(value) {
            return Self::exact(Interval::point(key));
        }
        let point: IntervalSet = Interval::point(encode(value)).into();
        match value.as_array() {
            Some(array) => {
                let first = array.values().next().unwrap_or(Value::UNDEFINED);
                Self::loose(point.union(&Interval::point(encode(first)).into()))
            }
            None => Self::loose(point),
        }
    }
}

/// Returns the key of the values equal to `value`; `None` where other values have that key too: a missing field has the
/// key of null, an empty array that of undefined, and any other array the keys of its elements.
pub(super) fn only_key(value: Value<'_>) -> Option<SmallBytes> {
    (!matches!(value.kind(), Kind::Array | Kind::Null | Kind::Undefined)).then(|| encode(value))
}

pub(super) fn encode(value: Value<'_>) -> SmallBytes {
    let mut out = Vec::with_capacity(USUAL_KEY_BYTES);
    key::encode(value, &mut out);
    out.into()
}

/// The first capacity of a buffer for a key, in bytes. Most keys fit, so that the buffer is allocated once.
const USUAL_KEY_BYTES: usize = 64;

/// Returns the keys of a class of types.
pub(super) fn of_bracket(class: Bracket) -> IntervalSet {
    interval::bracket_interval(class).into()
}

/// Returns the keys of the class that a type belongs to.
pub(super) fn of_kind(kind: Kind) -> IntervalSet {
    of_bracket(bracket(kind))
}
