use std::{ops::Deref, sync::Arc};

use super::{
    Node,
    field::{Field, Sense},
    operators,
};
use crate::{
    raw::{Doc, Value},
    work,
};

/// Conditions of which one must hold. The list never has exactly one node.
#[derive(Clone, Debug, Default)]
pub(super) struct Disjunction {
    nodes: Arc<[Node]>,
    /// `$in` with the same operands, if the nodes are many equalities on one path: one search instead of a comparison with each.
    membership: Option<Field>,
}

impl Disjunction {
    pub(super) fn matches(&self, doc: Doc<'_>) -> bool {
        match &self.membership {
            Some(field) => field.matches(doc),
            None => work::spend(self.len()) && self.iter().any(|node| node.matches(doc)),
        }
    }

    pub(super) fn matches_value(&self, value: Value<'_>) -> bool {
        match &self.membership {
            Some(field) => field.matches_value(value),
            None => work::spend(self.len()) && self.iter().any(|node| node.matches_value(value)),
        }
    }
}

impl From<Vec<Node>> for Disjunction {
    fn from(nodes: Vec<Node>) -> Self {
        let membership = operators::of_equalities(&nodes, Sense::Holds);
        Self { nodes: nodes.into(), membership }
    }
}

impl Deref for Disjunction {
    type Target = [Node];

    fn deref(&self) -> &[Node] {
        &self.nodes
    }
}
