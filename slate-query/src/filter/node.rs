use std::sync::Arc;

use super::{
    collated::Collated,
    computed::Computed,
    conjunction::Conjunction,
    disjunction::Disjunction,
    field::{Field, Sense},
    operator::Operator,
};
use crate::{
    path::Path,
    raw::{Doc, Value},
    schema::Schema,
};

/// A node of a filter's tree: a condition on a path, or a logical combination of nodes. Clones share its conditions.
#[derive(Clone, Debug)]
pub struct Node {
    pub(super) tree: Tree,
}

#[derive(Clone, Debug)]
pub(super) enum Tree {
    /// All must match. An empty list always matches.
    And(Conjunction),
    /// One must match. An empty list never matches.
    Or(Disjunction),
    /// Must not match. Never contains a `Field` of [`Sense::Holds`], because such a field
    /// is negated in place.
    Not(Arc<Node>),
    Field(Field),
    /// An expression.
    Computed(Arc<Computed>),
    /// Conditions that compare strings by a collation.
    Collated(Arc<Collated>),
    /// `$jsonSchema`.
    Schema(Arc<Schema>),
}

impl Node {
    pub(super) fn field(path: &Path, operator: impl Operator + 'static) -> Self {
        Self { tree: Tree::Field(Field::new(path.clone(), operator)) }
    }

    /// Returns the conjunction of `nodes`, with nested conjunctions flattened. If there is a single node, returns that
    /// node.
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

    /// Appends the node, or its conjuncts if it is a conjunction.
    fn flatten_into(self, nodes: &mut Vec<Node>) {
        match self.tree {
            Tree::And(conjunction) => nodes.extend_from_slice(conjunction.nodes()),
            Tree::Or(_) | Tree::Not(_) | Tree::Field(_) | Tree::Computed(_) | Tree::Schema(_) | Tree::Collated(_) => {
                nodes.push(self)
            }
        }
    }

    /// Returns the disjunction of `nodes`. If there is a single node, returns that node, as in MongoDB.
    pub(super) fn any(mut nodes: Vec<Node>) -> Self {
        match nodes.pop() {
            Some(only) if nodes.is_empty() => only,
            last => {
                nodes.extend(last);
                Self { tree: Tree::Or(nodes.into()) }
            }
        }
    }

    pub(super) fn never() -> Self {
        Self { tree: Tree::Or(Disjunction::default()) }
    }

    pub(super) fn negated(self) -> Self {
        match self.tree {
            Tree::Field(field) if field.sense == Sense::Holds => Self { tree: Tree::Field(field.fails()) },
            tree @ (Tree::And(_)
            | Tree::Or(_)
            | Tree::Not(_)
            | Tree::Field(_)
            | Tree::Computed(_)
            | Tree::Schema(_)
            | Tree::Collated(_)) => Self { tree: Tree::Not(Arc::new(Self { tree })) },
        }
    }

    /// Returns the path and the operand if the node is an equality, or with [`Sense::Fails`] the negation of one.
    pub(super) fn equality(&self, sense: Sense) -> Option<(&Path, Value<'_>)> {
        match &self.tree {
            Tree::Field(field) if field.sense == sense => Some((&field.path, field.operator.equality()?)),
            _ => None,
        }
    }

    /// Returns the branches of an `$or`, or of a `$expr` whose expression is an `$or`; `None` for other nodes.
    pub fn branches(&self) -> Option<&[Node]> {
        match &self.tree {
            Tree::Or(nodes) => Some(nodes),
            Tree::Computed(computed) => computed.branches(),
            Tree::And(_) | Tree::Not(_) | Tree::Field(_) | Tree::Schema(_) | Tree::Collated(_) => None,
        }
    }

    /// Returns the conditions that must all hold: the operands of an `$and`, or this node itself.
    pub fn conjuncts(&self) -> &[Node] {
        match &self.tree {
            Tree::And(conjunction) => conjunction.nodes(),
            Tree::Or(_) | Tree::Not(_) | Tree::Field(_) | Tree::Computed(_) | Tree::Schema(_) | Tree::Collated(_) => {
                std::slice::from_ref(self)
            }
        }
    }

    /// Returns whether `holds` is true for the path of every condition.
    pub(super) fn all_paths(&self, holds: &mut dyn FnMut(&Path) -> bool) -> bool {
        match &self.tree {
            Tree::Field(field) => holds(&field.path),
            Tree::And(conjunction) => conjunction.nodes().iter().all(|node| node.all_paths(holds)),
            Tree::Or(nodes) => nodes.iter().all(|node| node.all_paths(holds)),
            Tree::Not(node) => node.all_paths(holds),
            Tree::Computed(computed) => computed.all_paths(holds),
            // A schema can depend on every field of a document, so no list of paths is complete.
            Tree::Schema(_) => false,
            Tree::Collated(collated) => collated.all_paths(holds),
        }
    }

    /// Returns whether the document matches. An expression that fails counts as false.
    #[inline]
    pub fn matches(&self, doc: Doc<'_>) -> bool {
        match &self.tree {
            Tree::Field(field) => field.matches(doc),
            Tree::And(conjunction) => conjunction.matches(doc),
            Tree::Or(nodes) => nodes.matches(doc),
            Tree::Not(node) => !node.matches(doc),
            Tree::Computed(computed) => computed.evaluate(doc).unwrap_or(false),
            Tree::Schema(schema) => schema.matches(doc),
            Tree::Collated(collated) => collated.evaluate(doc).unwrap_or(false),
        }
    }

    /// Returns whether the value itself satisfies the conditions; paths are ignored.
    pub(super) fn matches_value(&self, value: Value<'_>) -> bool {
        match &self.tree {
            Tree::Field(field) => field.matches_value(value),
            Tree::And(conjunction) => conjunction.matches_value(value),
            Tree::Or(nodes) => nodes.matches_value(value),
            Tree::Not(node) => !node.matches_value(value),
            // These conditions are evaluated on whole documents, never on a single value.
            Tree::Computed(_) | Tree::Collated(_) | Tree::Schema(_) => false,
        }
    }
}
