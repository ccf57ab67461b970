//! Determines which paths an update can change, so that indexes on other paths need no maintenance.

use super::{
    operator::Creates,
    parse::{Update, UpdateForm},
    position::position,
    tree::{Named, UpdateNode},
};
use crate::path::{Part, Path};

impl Update {
    /// Returns whether the update can change the entries of an index on `path`. An update touches a path if it changes
    /// the path itself, a prefix of it or a longer path, where array positions are ignored. It also touches the paths
    /// through an array that it may append to: `$set` of `a.7.b` touches an index on `a.c`.
    pub fn touches(&self, path: &Path) -> bool {
        match &self.0 {
            UpdateForm::Replacement(_) => true,
            UpdateForm::Pipeline(pipeline) => pipeline.touches(path),
            UpdateForm::Operators(operators) => match path.parts().split_first() {
                // The first names are never within an array.
                Some((first, rest)) if operators.root.positional.is_none() => {
                    operators.root.child(first).is_some_and(|child| meets(child, rest))
                }
                _ => true,
            },
        }
    }
}

/// Returns whether the operators of a node can change the values at `parts`, the rest of an index's path: an operator's path equals it, or one is a
/// prefix of the other. Steps that may be array positions are optional.
fn meets(node: &UpdateNode, parts: &[Part]) -> bool {
    let Some((part, rest)) = parts.split_first() else { return true };
    let at_position = |child: &UpdateNode| creates_fields(child) || meets(child, parts);
    match node {
        UpdateNode::Leaf(_) => true,
        UpdateNode::Named(named) => {
            named.child(part).is_some_and(|child| meets(child, rest))
                || named.children.iter().any(|(name, child)| position(name.as_str()).is_some() && at_position(child))
                || named
                    .positional
                    .as_deref()
                    .is_some_and(|child| at_position(child) || (part.position().is_some() && meets(child, rest)))
        }
        UpdateNode::Each(each) => {
            each.0.iter().any(|(_, child)| meets(child, parts) || (part.position().is_some() && meets(child, rest)))
        }
    }
}

/// Returns whether an operator at or below the node creates missing fields, and so may append to an array.
fn creates_fields(node: &UpdateNode) -> bool {
    match node {
        UpdateNode::Leaf(leaf) => leaf.operator.creates() == Creates::Fields,
        UpdateNode::Named(Named { children, positional }) => {
            children.values().chain(positional.as_deref()).any(creates_fields)
        }
        UpdateNode::Each(each) => each.0.iter().any(|(_, child)| creates_fields(child)),
    }
}
