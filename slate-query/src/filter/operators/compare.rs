use std::cmp::Ordering;

use super::{
    super::{
        Node,
        bounds::{Bounds, encode, of_kind},
        clause::Clause,
        operator::{Operator, Rank},
    },
    equal::refuse_undefined,
};
use crate::{
    Result,
    interval::{self, Interval, IntervalSet, Place},
    number::Number,
    order::{self, Bracket, bracket},
    raw::{Kind, OwnedValue, Value, Writer},
};

/// `$lt`, `$lte`, `$gt`, `$gte`: the value belongs to the operand's class and compares as required. Only MinKey and
/// MaxKey compare with values of all classes. NaN satisfies a relation only by being equal.
#[derive(Clone, Debug)]
struct Compare {
    relation: Relation,
    operand: OwnedValue,
    decoded: Decoded,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Relation {
    #[inline]
    fn accepts(self, order: Ordering) -> bool {
        match self {
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }

    fn accepts_equal(self) -> bool {
        self.accepts(Ordering::Equal)
    }

    fn is_upward(self) -> bool {
        self.accepts(Ordering::Greater)
    }
}

/// The operand, decoded for the common types.
#[derive(Clone, Copy, Debug)]
enum Decoded {
    Int32(i32),
    Int64(i64),
    Double(f64),
    Date(i64),
    String,
    NaN,
    /// MinKey and MaxKey.
    End,
    Other,
}

impl Decoded {
    fn of(value: Value<'_>) -> Self {
        if Number::of(value).is_some_and(Number::is_nan) {
            return Self::NaN;
        }
        let decoded = match value.kind() {
            Kind::Int32 => value.as_i32().map(Self::Int32),
            Kind::Int64 => value.as_i64().map(Self::Int64),
            Kind::Double => value.as_f64().map(Self::Double),
            Kind::DateTime => value.as_millis().map(Self::Date),
            Kind::String => Some(Self::String),
            Kind::MinKey | Kind::MaxKey => Some(Self::End),
            _ => None,
        };
        decoded.unwrap_or(Self::Other)
    }
}

impl Compare {
    /// Returns whether all values of other classes satisfy the relation, because the operand is MinKey or MaxKey.
    fn spans_all(&self) -> bool {
        let kind = self.operand.as_value().kind();
        kind == Kind::MinKey && self.relation.is_upward() || kind == Kind::MaxKey && !self.relation.is_upward()
    }

    fn holds_slowly(&self, value: Value<'_>) -> bool {
        let operand = self.operand.as_value();
        let class = bracket(operand.kind());
        if class != bracket(value.kind()) {
            return self.spans_all();
        }
        if class == Bracket::Number && Number::of(value).is_some_and(Number::is_nan) {
            return false;
        }
        self.relation.accepts(order::compare(value, operand))
    }
}

impl Operator for Compare {
    #[inline]
    fn holds(&self, value: Value<'_>) -> bool {
        let order = match self.decoded {
            Decoded::Int32(operand) => value.as_i32().map(|value| value.cmp(&operand)),
            Decoded::Int64(operand) => value.as_i64().map(|value| value.cmp(&operand)),
            Decoded::Double(operand) => value.as_f64().and_then(|value| value.partial_cmp(&operand)),
            Decoded::Date(operand) => value.as_millis().map(|value| value.cmp(&operand)),
            Decoded::String if value.kind() == Kind::String => Some(value.text().cmp(&self.operand.as_value().text())),
            Decoded::NaN => {
                return self.relation.accepts_equal() && Number::of(value).is_some_and(Number::is_nan);
            }
            Decoded::String | Decoded::End | Decoded::Other => None,
        };
        match order {
            Some(order) => self.relation.accepts(order),
            None => self.holds_slowly(value),
        }
    }

    fn holds_missing(&self) -> bool {
        self.spans_all() || self.relation.accepts_equal() && self.operand.as_value().kind() == Kind::Null
    }

    fn bounds(&self) -> Bounds {
        let operand = self.operand.as_value();
        if matches!(self.decoded, Decoded::NaN) {
            let nan =
                if self.relation.accepts_equal() { interval::nan_interval().into() } else { IntervalSet::empty() };
            return Bounds::exact(nan);
        }
        // Arrays are compared as a whole, but an index contains their elements.
        if self.spans_all() || operand.kind() == Kind::Array {
            return Bounds::unknown();
        }
        let point = encode(operand);
        let range = match self.relation {
            Relation::Less => Interval::new(Place::before([]), Place::before(point)),
            Relation::LessOrEqual => Interval::new(Place::before([]), Place::after(point)),
            Relation::Greater => Interval::new(Place::after(point), Place::after([])),
            Relation::GreaterOrEqual => Interval::new(Place::before(point), Place::after([])),
        };
        let mut intervals = of_kind(operand.kind()).intersect(&range.into());
        match bracket(operand.kind()) {
            Bracket::Number => {
                let numbers = Interval::new(interval::above_nan(), Place::after([]));
                intervals = intervals.intersect(&numbers.into());
                Bounds::exact(intervals)
            }
            // Missing fields have the key of null.
            Bracket::Null => Bounds::loose(intervals),
            _ => Bounds::exact(intervals),
        }
    }

    fn may_limit_an_index(&self) -> bool {
        true
    }

    fn rank(&self) -> Rank {
        match self.relation {
            Relation::Less => Rank::Less,
            Relation::LessOrEqual => Rank::LessOrEqual,
            Relation::Greater => Rank::Greater,
            Relation::GreaterOrEqual => Rank::GreaterOrEqual,
        }
    }

    fn write(&self, out: &mut Writer) {
        let name: &[u8] = match self.relation {
            Relation::Less => b"$lt",
            Relation::LessOrEqual => b"$lte",
            Relation::Greater => b"$gt",
            Relation::GreaterOrEqual => b"$gte",
        };
        out.append(name, self.operand.as_value());
    }
}

pub(super) fn parse(clause: Clause<'_>, relation: Relation) -> Result<Option<Node>> {
    if clause.operand.kind() == Kind::Regex {
        return Err(clause.refuse(format!("Can't have RegEx as arg to predicate over field '{}'.", clause.path)));
    }
    refuse_undefined(clause)?;
    let compare = Compare { relation, operand: clause.operand.to_owned(), decoded: Decoded::of(clause.operand) };
    Ok(Some(Node::field(clause.path, compare)))
}
