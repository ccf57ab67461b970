use std::mem::discriminant;

use super::{
    Exactness, Node,
    field::{Field, Sense},
    node::Tree,
    operators,
};
use crate::path::Path;

/// Maximum number of pairs of branches that are compared.
const MOST_COMPARED: usize = 1 << 12;

impl Node {
    /// Returns `true` only if every document that matches `self` also matches `condition`; `false` if this is not certain.
    pub(super) fn implies(&self, condition: &Node) -> bool {
        if let Tree::And(conditions) = &condition.tree {
            return conditions.nodes().iter().all(|condition| self.implies(condition));
        }
        if let Tree::Or(branches) = &self.tree {
            // Mostly, the condition is the same list. Of two long lists, comparing each branch with each takes too long.
            let others = condition.branches().map_or(1, <[Self]>::len);
            return self.is_written_as(condition)
                || ((others == 1 || branches.len().saturating_mul(others) <= MOST_COMPARED)
                    && branches.iter().all(|branch| branch.implies(condition)));
        }
        let one = self.conjuncts().iter().any(|conjunct| conjunct.implies_single(condition));
        one || condition.branches().is_some_and(|branches| branches.iter().any(|branch| self.implies(branch)))
    }

    /// Returns the path that every matching document has; `None` if none is known. With [`Exactness::Always`] if nothing
    /// else is required.
    pub fn required_path(&self) -> Option<(&Path, Exactness)> {
        let Tree::Field(field) = &self.tree else { return None };
        if field.requires_existence() {
            return Some((&field.path, Exactness::Always));
        }
        self.implies(&operators::exists(&field.path)).then_some((&field.path, Exactness::Never))
    }

    fn implies_single(&self, condition: &Node) -> bool {
        let by_fields = match (&self.tree, &condition.tree) {
            (Tree::Field(field), Tree::Field(condition)) => field.implies(condition),
            (Tree::Or(_), _) => return self.implies(condition),
            (Tree::Computed(computed), Tree::Field(condition)) => computed.implies(condition),
            (Tree::Collated(collated), Tree::Collated(condition)) => return collated.implies(condition),
            _ => false,
        };
        by_fields || self.is_written_as(condition)
    }

    /// Returns whether the conditions are written as the same document. False for conditions with a collation.
    fn is_written_as(&self, condition: &Node) -> bool {
        // The document of a condition does not contain its collation, so only conditions without a collation are compared by
        // their documents. That of a long list is not written for each of its branches.
        !matches!(self.tree, Tree::Collated(_))
            && discriminant(&self.tree) == discriminant(&condition.tree)
            && self.to_document() == condition.to_document()
    }
}

impl Field {
    fn implies(&self, condition: &Field) -> bool {
        if self.path != condition.path || condition.sense == Sense::Fails {
            return false;
        }
        // A condition that every value satisfies only requires the field to exist.
        if condition.requires_existence() {
            return match self.sense {
                Sense::Holds => !self.holds_missing(),
                // The negation of an operator that a missing field satisfies requires a value, if the path is a single
                // name.
                Sense::Fails => self.holds_missing() && self.path.parts().len() == 1,
            };
        }
        if self.sense == Sense::Fails {
            return false;
        }
        // Null shares its key with missing fields, so bounds do not decide.
        if self.operator.equality().is_some_and(|value| value.kind() == crate::raw::Kind::Null) {
            return condition.holds_missing() && condition.operator.holds(crate::raw::Value::NULL);
        }
        // A matching document has a key within the bounds, and keys within exact bounds satisfy the condition.
        let (bounds, required) = (self.operator.bounds(), condition.operator.bounds());
        let within = bounds.intervals.intersect(&required.intervals) == bounds.intervals;
        required.exact == Exactness::Always && !self.path.has_position() && within
    }
}
