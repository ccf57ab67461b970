use super::super::{
    Exactness, Node,
    bounds::Bounds,
    clause::Clause,
    field::Sense,
    node::Tree,
    operator::{Cost, Operator, Rank, Reach},
    parse,
};
use crate::{
    Result,
    raw::{Doc, Kind, Value, Writer},
    work,
};

/// `$elemMatch`: the value is an array with an element that satisfies all conditions.
#[derive(Clone, Debug)]
enum ElemMatch {
    /// Conditions on the element's fields. In an element that is an array, positions are the field names.
    Document(Node),
    /// Conditions on the element itself.
    Value(Node),
}

impl ElemMatch {
    fn accepts(&self, element: Value<'_>) -> bool {
        match self {
            Self::Document(node) => element.as_container().is_some_and(|document| node.matches(document)),
            Self::Value(node) => node.matches_value(element),
        }
    }
}

impl Operator for ElemMatch {
    fn holds(&self, value: Value<'_>) -> bool {
        let spend = || work::spend(work::of_bytes(value.bytes().len()));
        value.as_array().is_some_and(|array| spend() && array.values().any(|element| self.accepts(element)))
    }

    fn reach(&self) -> Reach {
        Reach::Whole
    }

    fn position(&self, array: Value<'_>) -> Option<usize> {
        array.as_array()?.values().position(|element| self.accepts(element))
    }

    fn bounds(&self) -> Bounds {
        match self {
            Self::Document(_) => Bounds::unknown(),
            // One element satisfies all conditions, so its key is within the bounds of each.
            Self::Value(node) => {
                let mut intervals = Bounds::unknown().intervals;
                for conjunct in node.conjuncts() {
                    intervals = intervals.intersect(&element_bounds(conjunct).intervals);
                }
                Bounds::loose(intervals)
            }
        }
    }

    fn element_conditions(&self) -> Option<&Node> {
        match self {
            Self::Document(node) => Some(node),
            Self::Value(_) => None,
        }
    }

    fn can_fail(&self) -> bool {
        let (Self::Document(node) | Self::Value(node)) = self;
        node.can_fail()
    }

    fn cost(&self) -> Cost {
        Cost::Expensive
    }

    fn rank(&self) -> Rank {
        match self {
            Self::Document(_) => Rank::ElemMatchObject,
            Self::Value(_) => Rank::ElemMatchValue,
        }
    }

    fn write(&self, out: &mut Writer) {
        match self {
            Self::Document(node) => {
                out.open_document(b"$elemMatch");
                out.extend(Doc::new(&node.to_document()));
                out.close();
            }
            Self::Value(node) => {
                out.open_document(b"$elemMatch");
                node.write_operators(out);
                out.close();
            }
        }
    }
}

/// Returns the bounds of the key of an element that satisfies the condition itself.
fn element_bounds(node: &Node) -> Bounds {
    let Tree::Field(field) = &node.tree else { return Bounds::unknown() };
    if field.operator.reach() == Reach::Whole {
        // The operator needs an array, and an element that is an array is indexed as a whole.
        return Bounds::unknown();
    }
    let bounds = field.operator.bounds();
    match field.sense {
        Sense::Holds => bounds,
        Sense::Fails if bounds.exact == Exactness::Always => Bounds::loose(bounds.intervals.complement()),
        Sense::Fails => Bounds::unknown(),
    }
}

pub(super) fn parse(clause: Clause<'_>) -> Result<Option<Node>> {
    node(clause).map(Some)
}

pub(super) fn node(clause: Clause<'_>) -> Result<Node> {
    if clause.operand.kind() != Kind::Document {
        return Err(clause.refuse("$elemMatch needs an Object"));
    }
    let conditions = Doc::new(clause.operand.bytes());
    let scope = clause.scope.element();
    let operator = if is_value_condition(conditions) {
        // The operators are evaluated on the element itself; the path is irrelevant.
        ElemMatch::Value(parse::field_operators(clause.path, conditions, scope)?)
    } else {
        ElemMatch::Document(parse::document(conditions, scope).map_err(|error| clause.locate(error))?)
    };
    Ok(Node::field(clause.path, operator))
}

/// Returns whether the conditions are operators on the element instead of a filter on its fields. A document with a
/// field of a reference (`$ref`, `$id`, `$db`) and one that begins with an operator on documents are filters.
fn is_value_condition(conditions: Doc<'_>) -> bool {
    let Some(first) = conditions.elements().next() else { return false };
    let reference = ["$ref", "$id", "$db"].iter().any(|name| conditions.get(name).is_some());
    let on_documents = std::str::from_utf8(first.name).is_ok_and(|name| super::on_document(name).is_some());
    first.name.starts_with(b"$") && !reference && !on_documents
}
