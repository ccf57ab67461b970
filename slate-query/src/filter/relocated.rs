use std::sync::Arc;

use super::{Node, conjunction::Conjunction, node::Tree};
use crate::path::Path;

impl Node {
    /// Returns the same conditions with every path replaced by `to`. `None` if `to` has no path for one of them, or if the
    /// node contains expressions, a schema, conditions with a collation, or a pattern whose match can fail.
    pub fn relocated(&self, to: &impl Fn(&Path) -> Option<Path>) -> Option<Self> {
        let all = |nodes: &[Self]| nodes.iter().map(|node| node.relocated(to)).collect::<Option<Vec<_>>>();
        let tree = match &self.tree {
            Tree::Field(field) if field.operator.can_fail() => return None,
            Tree::Field(field) => Tree::Field(field.on(to(&field.path)?)),
            Tree::And(conjunction) => Tree::And(Conjunction::new(all(conjunction.nodes())?)),
            Tree::Or(nodes) => Tree::Or(all(nodes)?.into()),
            Tree::Not(node) => Tree::Not(Arc::new(node.relocated(to)?)),
            Tree::Computed(_) | Tree::Schema(_) | Tree::Collated(_) => return None,
        };
        Some(Self { tree })
    }
}
