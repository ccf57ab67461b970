use super::{
    Node,
    collated::Collated,
    field::{Field, Sense, first_position},
    node::Tree,
    operator::{Rank, Reach},
};
use crate::{order, path::Path, raw::Doc, work};

/// Returns the array position that `$` represents in a matching document; `None` if no condition records one.
///
/// In MongoDB's matcher, each condition that holds for an array element overwrites the position that the previous
/// condition recorded, in the order of [`Rank`]. Negations and disjunctions record nothing. A disjunction of equalities
/// on one path counts as `$in`, into which MongoDB rewrites it.
pub(super) fn of(node: &Node, doc: Doc<'_>, ties: Ties) -> Option<usize> {
    let mut conditions: Vec<Condition<'_>> = node.conjuncts().iter().filter_map(Condition::of).collect();
    // Sorts in reverse order: the last condition that records a position determines it.
    match ties {
        Ties::First => conditions.sort_by(|a, b| b.key().cmp(&a.key())),
        Ties::Last => {
            conditions.sort_by(|a, b| a.key().cmp(&b.key()));
            conditions.reverse();
        }
    }
    conditions.iter().find_map(|condition| condition.position(doc))
}

/// Which of several conditions that are equal in MongoDB's order determines the position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ties {
    /// The first in the filter: for updates.
    First,
    /// The last in the filter: for projections.
    Last,
}

/// A condition that can tell which element of an array matched: the position that `$` stands for.
enum Condition<'n> {
    Field(&'n Field),
    /// A disjunction of equalities on one path.
    OneOf(&'n Path, &'n [Node]),
    /// A condition that compares strings by a collation.
    Collated(&'n Collated, Box<Self>),
}

impl<'n> Condition<'n> {
    fn of(node: &'n Node) -> Option<Self> {
        match &node.tree {
            Tree::Field(field) => (field.sense == Sense::Holds).then_some(Self::Field(field)),
            Tree::Or(nodes) => {
                let (path, _) = nodes.first()?.equality(Sense::Holds)?;
                let same = |node| Node::equality(node, Sense::Holds).is_some_and(|(other, _)| other == path);
                nodes.iter().all(same).then_some(Self::OneOf(path, nodes))
            }
            Tree::Collated(collated) => Some(Self::Collated(collated, Box::new(Self::of(collated.replaced())?))),
            Tree::And(_) | Tree::Not(_) | Tree::Computed(_) | Tree::Schema(_) => None,
        }
    }

    fn key(&self) -> (Rank, &str) {
        match self {
            Self::Field(field) => (field.operator.rank(), field.path.as_str()),
            Self::OneOf(path, _) => (Rank::In, path.as_str()),
            Self::Collated(_, condition) => condition.key(),
        }
    }

    fn position(&self, doc: Doc<'_>) -> Option<usize> {
        match self {
            Self::Field(field) => field.position(doc),
            Self::OneOf(path, nodes) => first_position(path, doc, Reach::Elements, &mut |value| {
                let equals =
                    |node| Node::equality(node, Sense::Holds).is_some_and(|(_, other)| order::equal(value, other));
                let holds = work::spend(nodes.len()) && nodes.iter().any(equals);
                holds.then_some(None)
            }),
            Self::Collated(_, condition) if condition.reads_text() => condition.position(doc),
            Self::Collated(collated, condition) => condition.position(Doc::new(&collated.replace(doc))),
        }
    }

    fn reads_text(&self) -> bool {
        matches!(self, Self::Field(field) if field.operator.reads_text())
    }
}
