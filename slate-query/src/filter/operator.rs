use std::fmt::Debug;

use super::bounds::Bounds;
use crate::{
    interval::IntervalSet,
    path::Path,
    raw::{Value, Writer},
};

/// What a filter asks of the values at a path: the meaning of one operator with its operand.
///
/// A document satisfies it where one of the values at the path does; see [`super::field::Field`].
pub(super) trait Operator: Debug + Send + Sync {
    /// Whether this value satisfies it, taken as it is: an array's elements are the caller's to go through.
    fn holds(&self, value: Value<'_>) -> bool;

    /// Whether a missing field satisfies it.
    fn holds_missing(&self) -> bool {
        false
    }

    /// Whether every value satisfies it, so that it only asks that there is one.
    fn holds_any_value(&self) -> bool {
        false
    }

    /// Whether it is asked of an array's elements too.
    fn reach(&self) -> Reach {
        Reach::Elements
    }

    /// The position of the element that made an array satisfy it, where it looks at elements itself.
    fn position(&self, _array: Value<'_>) -> Option<usize> {
        None
    }

    /// What it says of an index's keys: where a value satisfies it, the value's key lies within, and where an array as
    /// a whole does, the key of one of its elements (or of undefined, where it is empty) does too.
    fn bounds(&self) -> Bounds;

    /// Where an index on `path` holds an entry of each document that does *not* satisfy it, where that is known and
    /// does not follow from exact bounds.
    fn outside(&self, _path: &Path) -> Option<IntervalSet> {
        None
    }

    /// The conditions on fields of an array's elements that a document must satisfy with one element.
    fn element_conditions(&self) -> Option<&super::Node> {
        None
    }

    /// The only value that satisfies it, where there is one: what an upsert starts from. Its [`bounds`](Self::bounds) are those of
    /// being equal to that value, and it is asked of elements too: an index's entries of the value tell the rest.
    fn equality(&self) -> Option<Value<'_>> {
        None
    }

    /// How dear it is to ask.
    fn cost(&self) -> Cost {
        Cost::Cheap
    }

    /// Its place among the conditions of a conjunction.
    fn rank(&self) -> Rank;

    /// Appends the operator and its operand: `$gt: 5`.
    fn write(&self, out: &mut Writer);
}

/// What an operator is asked of, where its path leads to an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Each element, then the array.
    Elements,
    /// The array alone.
    Whole,
}

/// How dear an operator is to ask: the cheap ones of a conjunction are asked first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cost {
    /// A look at a few bytes.
    Cheap,
    /// A walk or a search through the value.
    Expensive,
}

/// The order in which MongoDB sorts the conditions of a conjunction before it matches them. It decides which of several
/// arrays gives the position that `$` stands for: the last in this order.
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
}
