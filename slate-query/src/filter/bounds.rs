//! What operators say of an index's keys.

use super::terms::Exactness;
use crate::{
    interval::{Interval, IntervalSet},
    key,
    order::{Bracket, bracket},
    raw::{Kind, SmallBytes, Value},
};

/// Where the keys of the values lie that satisfy an operator; see [`super::operator::Operator::bounds`].
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    pub(super) intervals: IntervalSet,
    /// `Always`: a value whose key lies within satisfies the operator.
    pub(super) exact: Exactness,
}

impl Bounds {
    /// Nothing is known.
    pub(super) fn unknown() -> Self {
        Self::loose(IntervalSet::all())
    }

    pub(super) fn exact(intervals: impl Into<IntervalSet>) -> Self {
        Self { intervals: intervals.into(), exact: Exactness::Always }
    }

    pub(super) fn loose(intervals: impl Into<IntervalSet>) -> Self {
        Self { intervals: intervals.into(), exact: Exactness::Never }
    }

    /// The bounds of values that satisfy either.
    pub(super) fn or(self, other: Self) -> Self {
        Self { intervals: self.intervals.union(&other.intervals), exact: self.exact.min(other.exact) }
    }

    /// The values equal to `value`, and the arrays equal to it as a whole: those have a key for their first element.
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

/// The key of the values equal to `value`, where nothing else has it: a missing field has that of null, an empty array that of
/// undefined, and any other array those of its elements.
pub(super) fn only_key(value: Value<'_>) -> Option<SmallBytes> {
    (!matches!(value.kind(), Kind::Array | Kind::Null | Kind::Undefined)).then(|| encode(value))
}

pub(super) fn encode(value: Value<'_>) -> SmallBytes {
    let mut out = Vec::with_capacity(USUAL);
    key::encode(value, &mut out);
    out.into()
}

/// Few values take more bytes as a key: one allocation does for all others.
const USUAL: usize = 64;

/// The keys of a class of types.
pub(super) fn of_bracket(class: Bracket) -> IntervalSet {
    key::bracket_interval(class).into()
}

/// The keys of the class that a type belongs to.
pub(super) fn of_kind(kind: Kind) -> IntervalSet {
    of_bracket(bracket(kind))
}
