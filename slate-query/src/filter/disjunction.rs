use std::{ops::Deref, sync::Arc};

use super::{Node, collated::Collated, field::Sense, node::Tree, operators};
use crate::{
    raw::{Doc, Value},
    work,
};

/// Conditions of which one must hold. The list never has exactly one node.
#[derive(Clone, Debug, Default)]
pub(super) struct Disjunction {
    nodes: Arc<[Node]>,
    /// The same condition, if it can be evaluated at once: `$in` for many equalities on one path, which is one search instead of a
    /// comparison with each; a condition with a collation for several of them, which replaces the strings of a document once.
    together: Option<Arc<Node>>,
    computes: bool,
}

impl Disjunction {
    /// As [`Node::computes`].
    pub(super) fn computes(&self) -> bool {
        self.computes
    }

    pub(super) fn together(&self) -> Option<&Node> {
        self.together.as_deref()
    }

    pub(super) fn matches(&self, doc: Doc<'_>) -> bool {
        match &self.together {
            Some(together) => together.matches(doc),
            None => work::spend(self.len()) && self.iter().any(|node| node.matches(doc)),
        }
    }

    pub(super) fn matches_value(&self, value: Value<'_>) -> bool {
        match &self.together {
            Some(together) => together.matches_value(value),
            None => work::spend(self.len()) && self.iter().any(|node| node.matches_value(value)),
        }
    }
}

impl From<Vec<Node>> for Disjunction {
    fn from(nodes: Vec<Node>) -> Self {
        let membership = operators::of_equalities(&nodes, Sense::Holds).map(|field| Node { tree: Tree::Field(field) });
        let together = membership.or_else(|| Collated::any(&nodes)).map(Arc::new);
        let computes = nodes.iter().any(Node::computes);
        Self { nodes: nodes.into(), together, computes }
    }
}

impl Deref for Disjunction {
    type Target = [Node];

    fn deref(&self) -> &[Node] {
        &self.nodes
    }
}
