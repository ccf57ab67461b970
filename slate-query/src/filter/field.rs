use std::{ops::ControlFlow, sync::Arc};

use super::operator::{Cost, Operator, Reach};
use crate::{
    order::equal_by_bytes,
    path::{Found, Part, Path, PathEnd, Step},
    raw::{Doc, Kind, SmallBytes, Value},
    work,
};

/// An operator on a path.
///
/// A document satisfies it if one of the values at the path does. The path leads through arrays, and where it ends at
/// an array, the array's elements and the array itself are evaluated.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) path: Path,
    pub(super) operator: Arc<dyn Operator>,
    pub(super) sense: Sense,
    reach: Reach,
    missing: bool,
    /// For an equality that only one encoding satisfies: the bytes of the matching field (type, name, value), which are
    /// compared with the document's bytes.
    literal: Option<SmallBytes>,
}

/// Whether a condition requires that the operator holds or that it does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sense {
    Holds,
    Fails,
}

impl Field {
    pub(super) fn new(path: Path, operator: impl Operator + 'static) -> Self {
        let (reach, missing) = (operator.reach(), operator.holds_missing());
        let literal = operator.equality().and_then(|value| literal(&path, value));
        Self { path, operator: Arc::new(operator), sense: Sense::Holds, reach, missing, literal }
    }

    /// Returns the same operator on another path.
    pub(super) fn on(&self, path: Path) -> Self {
        let literal = self.operator.equality().and_then(|value| literal(&path, value));
        Self { path, literal, ..self.clone() }
    }

    /// Negates the operator.
    pub(super) fn fails(self) -> Self {
        Self { sense: Sense::Fails, ..self }
    }

    pub(super) fn cost(&self) -> Cost {
        self.operator.cost()
    }

    /// Returns whether a missing field satisfies the operator.
    pub(super) fn holds_missing(&self) -> bool {
        self.missing
    }

    /// Returns whether the condition only requires the field to exist.
    pub(super) fn requires_existence(&self) -> bool {
        self.sense == Sense::Holds && self.operator.holds_any_value()
    }

    /// Returns the first name of the path, as bytes.
    #[inline]
    pub(super) fn first(&self) -> &[u8] {
        self.path.parts().first().map_or(&[], Part::name_bytes)
    }

    #[inline]
    pub(super) fn matches(&self, doc: Doc<'_>) -> bool {
        let Some(first) = self.path.parts().first() else { return false };
        // Without a field table each condition scans all fields, so an early end of the call is checked here.
        if !doc.has_table() && work::is_over() {
            return false;
        }
        let by_bytes = self.literal.as_ref().and_then(|literal| first.holds_literal(doc, literal));
        match by_bytes {
            Some(holds) => holds == (self.sense == Sense::Holds),
            None => self.matches_from(first.find(doc)),
        }
    }

    /// Returns whether a document matches, given the value of the field that the path begins with.
    #[inline]
    pub(super) fn matches_from(&self, first: Option<Value<'_>>) -> bool {
        self.holds_from(first) == (self.sense == Sense::Holds)
    }

    /// Returns whether the value itself satisfies the condition; the path is ignored.
    pub(super) fn matches_value(&self, value: Value<'_>) -> bool {
        self.operator.holds(value) == (self.sense == Sense::Holds)
    }

    #[inline]
    fn holds_from(&self, first: Option<Value<'_>>) -> bool {
        match (self.path.parts(), first) {
            ([_], None) => self.missing,
            ([_], Some(value)) => self.holds_below(value),
            _ => self
                .path
                .walk_from(first, &mut |end| {
                    if self.holds_at(end) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                })
                .is_break(),
        }
    }

    fn holds_at(&self, end: PathEnd<'_>) -> bool {
        match (end.found, end.step) {
            (Found::Value(value), Step::Name) => self.holds_below(value),
            (Found::Value(value), Step::Position) => self.operator.holds(value),
            (Found::Missing, _) => self.missing,
            (Found::Blocked, _) => false,
        }
    }

    /// Returns whether the value, or one of its elements if it is an array, satisfies the operator.
    #[inline]
    fn holds_below(&self, value: Value<'_>) -> bool {
        if value.kind() == Kind::Array && self.reach == Reach::Elements {
            if !work::spend(work::of_bytes(value.bytes().len())) {
                return false;
            }
            let array = Doc::new(value.bytes());
            array.values().any(|element| self.operator.holds(element)) || self.operator.holds(value)
        } else {
            self.operator.holds(value)
        }
    }

    /// Returns the array position at which the operator holds, if an array was traversed.
    pub(super) fn position(&self, doc: Doc<'_>) -> Option<usize> {
        first_position(&self.path, doc, self.reach, &mut |value| {
            self.operator.holds(value).then(|| self.operator.position(value))
        })
    }
}

/// Returns the bytes of a field with this value in a document. `None` for a path of several names, and for types in
/// which values of different bytes can be equal.
fn literal(path: &Path, value: Value<'_>) -> Option<SmallBytes> {
    let [part] = path.parts() else { return None };
    let (kind, name) = (value.kind(), part.name_bytes());
    equal_by_bytes(kind).then(|| SmallBytes::concat(&[&[kind.byte()], name, &[0], value.bytes()]))
}

/// Returns the position of the first value along `path` for which `holds` returns `Some`: the position in the outermost
/// array on the way, or else the position that `holds` returned.
pub(super) fn first_position(
    path: &Path,
    doc: Doc<'_>,
    reach: Reach,
    holds: &mut impl FnMut(Value<'_>) -> Option<Option<usize>>,
) -> Option<usize> {
    let mut position = None;
    let _ = path.walk(doc, &mut |end| {
        let Found::Value(value) = end.found else { return ControlFlow::Continue(()) };
        work::spend(work::of_bytes(value.bytes().len()));
        if let (Some(array), Reach::Elements, Step::Name) = (value.as_array(), reach, end.step) {
            for (index, element) in array.values().enumerate() {
                if holds(element).is_some() {
                    position = end.position.or(Some(index));
                    return ControlFlow::Break(());
                }
            }
        }
        match holds(value) {
            Some(inner) => {
                position = end.position.or(inner);
                ControlFlow::Break(())
            }
            None => ControlFlow::Continue(()),
        }
    });
    position
}
