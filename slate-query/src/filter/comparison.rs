//! The index key ranges of comparisons in `$expr`.
//!
//! An expression compares a field as a whole, in BSON's order of all types: an array is greater than a number, whatever
//! its elements are. A multikey index contains the elements of arrays, so it serves only comparisons that no array
//! fulfils.

use super::{
    bounds::{Bounds, Exactness, encode},
    terms::{Strings, Term, Validity},
};
use crate::{
    collation::{Collation, has_text},
    expression::{Bindings, Comparison as Compared, Relation},
    interval::{Interval, IntervalSet, Place},
    path::Path,
    raw::{Doc, Kind, OwnedValue, Value},
};

/// A comparison of a field with a value.
#[derive(Debug)]
pub(super) struct Comparison {
    path: Path,
    relation: Relation,
    operand: OwnedValue,
}

impl Comparison {
    /// Creates the comparison. `None` if no index serves it: the path has a name of digits, or the value depends on the
    /// document, is missing or undefined, or cannot be computed.
    pub(super) fn new(compared: Compared<'_>, bindings: &Bindings) -> Option<Self> {
        if !compared.other.is_invariant() {
            return None;
        }
        let names: Vec<&str> = compared.field.iter().map(crate::raw::FieldName::as_str).collect();
        // In an expression a number is a field's name, in an index it can be a position.
        let path = Path::parse(&names.join(".")).ok().filter(|path| !path.has_position())?;
        let value = bindings.within(Doc::EMPTY, |env| compared.other.visit(env, |value| value.map(Value::to_owned)));
        let operand = value.ok().flatten()?;
        let is_known = match compared.relation {
            Relation::In => operand.as_value().as_array().is_some_and(|array| array.values().all(is_defined)),
            _ => is_defined(operand.as_value()),
        };
        is_known.then_some(Self { path, relation: compared.relation, operand })
    }

    /// Returns the range of the keys, for conditions that compare strings by `collation`. `None` if the index compares
    /// them otherwise.
    pub(super) fn term(&self, strings: Strings<'_>, collation: Option<&Collation>) -> Option<Term> {
        let operand = self.operand.as_value();
        let bounds = match (has_text(operand), strings, collation) {
            // The range may contain code, which the index has among the strings.
            (false, Strings::SortKeys(index), _) if index.replaces_code() => return None,
            // The order of the types is the same with every collation.
            (false, ..) | (true, Strings::Bytes, None) => self.bounds(operand),
            (true, Strings::SortKeys(index), Some(collation)) if index == collation => {
                self.bounds(collation.apply(operand).as_value())
            }
            (true, ..) => return None,
        };
        let exact = bounds.exact.min(Exactness::WhereNotMultikey);
        Some(Term { path: self.path.clone(), intervals: bounds.intervals, exact, validity: self.validity() })
    }

    /// Returns whether every document that fulfils the comparison has the field.
    pub(super) fn excludes_missing(&self) -> bool {
        match self.relation {
            Relation::Equal | Relation::In => true,
            Relation::Greater | Relation::GreaterOrEqual => self.operand.as_value().kind() != Kind::MinKey,
            Relation::Less | Relation::LessOrEqual => false,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn validity(&self) -> Validity {
        let is_array = |value: Value<'_>| value.kind() == Kind::Array;
        let operand = self.operand.as_value();
        let matches_arrays = match self.relation {
            Relation::Equal => is_array(operand),
            Relation::In => operand.as_array().is_some_and(|array| array.values().any(is_array)),
            Relation::Less | Relation::LessOrEqual | Relation::Greater | Relation::GreaterOrEqual => true,
        };
        if matches_arrays { Validity::WhereNotMultikey } else { Validity::Always }
    }

    fn bounds(&self, operand: Value<'_>) -> Bounds {
        if let (Relation::In, Some(array)) = (self.relation, operand.as_array()) {
            let points = array.values().map(|value| Interval::point(encode(value))).collect();
            let points = IntervalSet::from(points);
            return if array.values().any(is_null) { Bounds::loose(points) } else { Bounds::exact(points) };
        }
        let point = encode(operand);
        // A missing field is lower than null and has its key.
        let null = is_null(operand);
        match self.relation {
            Relation::Equal | Relation::In if null => Bounds::loose(Interval::point(point)),
            Relation::Equal | Relation::In => Bounds::exact(Interval::point(point)),
            Relation::Less if null => Bounds::loose(Interval::new(Place::before([]), Place::after(point))),
            Relation::Less => Bounds::exact(Interval::new(Place::before([]), Place::before(point))),
            Relation::LessOrEqual => Bounds::exact(Interval::new(Place::before([]), Place::after(point))),
            Relation::Greater => Bounds::exact(Interval::new(Place::after(point), Place::after([]))),
            Relation::GreaterOrEqual if null => Bounds::loose(Interval::new(Place::before(point), Place::after([]))),
            Relation::GreaterOrEqual => Bounds::exact(Interval::new(Place::before(point), Place::after([]))),
        }
    }
}

fn is_null(value: Value<'_>) -> bool {
    value.kind() == Kind::Null
}

fn is_defined(value: Value<'_>) -> bool {
    value.kind() != Kind::Undefined
}
