use super::{
    conjunction::Conjunction,
    field::{Field, Sense},
    operator::Operator,
};
use crate::{
    path::Path,
    raw::{Doc, Value},
};

/// A part of a filter: a condition on a path, or conditions joined by logic.
#[derive(Clone, Debug)]
pub struct Node {
    pub(super) tree: Tree,
}

#[derive(Clone, Debug)]
pub(super) enum Tree {
    /// All must hold; of none, that is true.
    And(Conjunction),
    /// One must hold; of none, that is false. Never exactly one.
    Or(Vec<Node>),
    /// It must not hold. Never a field that holds: that field is made to fail instead.
    Not(Box<Node>),
    Field(Field),
}

impl Node {
    pub(super) fn field(path: &Path, operator: impl Operator + 'static) -> Self {
        Self { tree: Tree::Field(Field::new(path.clone(), operator)) }
    }

    /// The conjunction of `nodes`, nested conjunctions laid flat; of one, that one itself.
    pub(super) fn all(mut nodes: Vec<Node>) -> Self {
        if nodes.iter().any(|node| matches!(node.tree, Tree::And(_))) {
            let nested = std::mem::take(&mut nodes);
            nested.into_iter().for_each(|node| node.flatten_into(&mut nodes));
        }
        match nodes.pop() {
            Some(only) if nodes.is_empty() => only,
            last => {
                nodes.extend(last);
                Self { tree: Tree::And(Conjunction::new(nodes)) }
            }
        }
    }

    /// Appends the node, or the nodes that it is the conjunction of.
    fn flatten_into(self, nodes: &mut Vec<Node>) {
        match self.tree {
            Tree::And(conjunction) => nodes.extend(conjunction.into_nodes()),
            Tree::Or(_) | Tree::Not(_) | Tree::Field(_) => nodes.push(self),
        }
    }

    /// The disjunction of `nodes`; of one, that one itself, as MongoDB simplifies it.
    pub(super) fn any(mut nodes: Vec<Node>) -> Self {
        match nodes.pop() {
            Some(only) if nodes.is_empty() => only,
            last => {
                nodes.extend(last);
                Self { tree: Tree::Or(nodes) }
            }
        }
    }

    pub(super) fn never() -> Self {
        Self { tree: Tree::Or(Vec::new()) }
    }

    pub(super) fn negated(self) -> Self {
        match self.tree {
            Tree::Field(field) if field.sense == Sense::Holds => Self { tree: Tree::Field(field.fails()) },
            tree @ (Tree::And(_) | Tree::Or(_) | Tree::Not(_) | Tree::Field(_)) => {
                Self { tree: Tree::Not(Box::new(Self { tree })) }
            }
        }
    }

    /// The branches of an `$or`.
    pub fn branches(&self) -> Option<&[Node]> {
        match &self.tree {
            Tree::Or(nodes) => Some(nodes),
            Tree::And(_) | Tree::Not(_) | Tree::Field(_) => None,
        }
    }

    /// The conditions that must all hold: those of an `$and`, or this one alone.
    pub fn conjuncts(&self) -> &[Node] {
        match &self.tree {
            Tree::And(conjunction) => conjunction.nodes(),
            Tree::Or(_) | Tree::Not(_) | Tree::Field(_) => std::slice::from_ref(self),
        }
    }

    /// Whether the document matches.
    #[inline]
    pub fn matches(&self, doc: Doc<'_>) -> bool {
        match &self.tree {
            Tree::Field(field) => field.matches(doc),
            Tree::And(conjunction) => conjunction.matches(doc),
            Tree::Or(nodes) => nodes.iter().any(|node| node.matches(doc)),
            Tree::Not(node) => !node.matches(doc),
        }
    }

    /// Whether a document matches all of whose fields that are asked for hold `value`.
    pub(super) fn matches_from(&self, value: Value<'_>) -> bool {
        match &self.tree {
            Tree::Field(field) => field.matches_from(Some(value)),
            Tree::And(conjunction) => conjunction.nodes().iter().all(|node| node.matches_from(value)),
            Tree::Or(nodes) => nodes.iter().any(|node| node.matches_from(value)),
            Tree::Not(node) => !node.matches_from(value),
        }
    }

    /// Whether the value satisfies the conditions, as an element of an array does: taken as it is, paths set aside.
    pub(super) fn matches_value(&self, value: Value<'_>) -> bool {
        match &self.tree {
            Tree::Field(field) => field.matches_value(value),
            Tree::And(conjunction) => conjunction.nodes().iter().all(|node| node.matches_value(value)),
            Tree::Or(nodes) => nodes.iter().any(|node| node.matches_value(value)),
            Tree::Not(node) => !node.matches_value(value),
        }
    }

    /// Hands over the path of every condition, in the filter's order.
    pub(super) fn visit_paths<'n>(&'n self, visit: &mut impl FnMut(&'n Path)) {
        match &self.tree {
            Tree::Field(field) => visit(&field.path),
            Tree::And(conjunction) => conjunction.nodes().iter().for_each(|node| node.visit_paths(visit)),
            Tree::Or(nodes) => nodes.iter().for_each(|node| node.visit_paths(visit)),
            Tree::Not(node) => node.visit_paths(visit),
        }
    }
}
