use std::fmt::Debug;

use super::bounds::Bounds;
use crate::{
    interval::IntervalSet,
    path::Path,
    raw::{Value, Writer},
};

/// One operator of a filter, such as `$gt`, with its operand.
///
/// A document satisfies it where one of the values at the path does; see [`super::field::Field`].
pub(super) trait Operator: Debug + Send + Sync {
    /// Returns whether this one value satisfies the operator. Where the value is an array, the caller also calls this
    /// with each of its elements, unless [`reach`](Self::reach) says otherwise.
    fn holds(&self, value: Value<'_>) -> bool;

    /// Returns the index keys of the values that satisfy the operator. If an array as a whole satisfies it, the key of
    /// one of the array's elements is within the bounds (the key of undefined, if the array is empty).
    fn bounds(&self) -> Bounds;

    /// Appends the operator and its operand: `$gt: 5`.
    fn write(&self, out: &mut Writer);

    /// Returns whether a missing field satisfies the operator.
    fn holds_missing(&self) -> bool {
        false
    }

    /// Returns whether the operator reads the characters of a string, as `$regex` does, instead of comparing it. A
    /// collation does not apply to it.
    fn reads_text(&self) -> bool {
        false
    }

    /// Returns whether every value satisfies the operator, so that it only requires the field to exist.
    fn holds_any_value(&self) -> bool {
        false
    }

    /// Returns what the operator is evaluated on where the value is an array.
    fn reach(&self) -> Reach {
        Reach::Elements
    }

    /// Returns the position of the element that made an array satisfy the operator, which a positional `$` then stands
    /// for. Only for operators of [`Reach::Whole`].
    fn position(&self, _array: Value<'_>) -> Option<usize> {
        None
    }

    /// Returns key ranges of an index on `path` that contain an entry of each document that does *not* satisfy the
    /// operator. `None` where they are unknown or follow from exact bounds.
    fn outside(&self, _path: &Path) -> Option<IntervalSet> {
        None
    }

    /// Returns the conditions that one element of the array must satisfy together. `None` except for `$elemMatch`.
    fn element_conditions(&self) -> Option<&super::Node> {
        None
    }

    /// Returns the value, if the operator is an equality with one value. An upsert starts from it. The operator must
    /// have the [`bounds`](Self::bounds) of `$eq` with that value and must reach elements.
    fn equality(&self) -> Option<Value<'_>> {
        None
    }

    /// Returns whether the filter of a partial index (`partialFilterExpression`) may contain the operator.
    fn may_limit_an_index(&self) -> bool {
        false
    }

    /// Returns how expensive an evaluation is.
    fn cost(&self) -> Cost {
        Cost::Cheap
    }

    /// Returns whether an evaluation can fail because it takes too many steps: whether the operand contains a pattern
    /// that needs backtracking.
    fn can_fail(&self) -> bool {
        false
    }

    /// Returns the operator's rank in MongoDB's order of conditions.
    fn rank(&self) -> Rank {
        Rank::Unranked
    }
}

/// What an operator is evaluated on where its path leads to an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Each element, then the array.
    Elements,
    /// Only the array.
    Whole,
}

/// How expensive it is to evaluate an operator: a conjunction evaluates its cheap conditions first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cost {
    /// Reads a few bytes.
    Cheap,
    /// Walks or searches the value.
    Expensive,
}

/// The order in which MongoDB sorts the conditions of a conjunction. Where several arrays match, the last condition in
/// this order determines the position that `$` represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    ElemMatchObject,
    ElemMatchValue,
    Size,
    Equal,
    LessOrEqual,
    Less,
    Greater,
    GreaterOrEqual,
    Regex,
    Mod,
    Exists,
    In,
    BitsAllSet,
    BitsAllClear,
    BitsAnySet,
    BitsAnyClear,
    Type,
    /// Operators that MongoDB does not have.
    Unranked,
}
