use super::{
    Exactness, Node,
    field::{Field, Sense},
    node::Tree,
};

impl Node {
    /// Whether every document that matches `self` surely matches `condition`.
    pub(super) fn implies(&self, condition: &Node) -> bool {
        if let Tree::And(conditions) = &condition.tree {
            return conditions.nodes().iter().all(|condition| self.implies(condition));
        }
        if let Tree::Or(branches) = &self.tree {
            return branches.iter().all(|branch| branch.implies(condition));
        }
        let one = self.conjuncts().iter().any(|conjunct| conjunct.implies_single(condition));
        one || condition.branches().is_some_and(|branches| branches.iter().any(|branch| self.implies(branch)))
    }

    fn implies_single(&self, condition: &Node) -> bool {
        let by_fields = match (&self.tree, &condition.tree) {
            (Tree::Field(field), Tree::Field(condition)) => field.implies(condition),
            (Tree::Or(_), _) => self.implies(condition),
            _ => false,
        };
        by_fields || self.to_document() == condition.to_document()
    }
}

impl Field {
    fn implies(&self, condition: &Field) -> bool {
        if self.path != condition.path || condition.sense == Sense::Fails {
            return false;
        }
        // A condition that every value satisfies asks only that there is one.
        if condition.operator.holds_any_value() {
            return match self.sense {
                Sense::Holds => !self.holds_missing(),
                // What fails where the field is missing implies a value where the path has one end.
                Sense::Fails => self.holds_missing() && self.path.parts().len() == 1,
            };
        }
        if self.sense == Sense::Fails {
            return false;
        }
        // Null, whose key stands for a missing field too, goes by the values themselves.
        if self.operator.equality().is_some_and(|value| value.kind() == crate::raw::Kind::Null) {
            return condition.holds_missing() && condition.operator.holds(crate::raw::Value::NULL);
        }
        // A document that matches has a key within the one's bounds; within exact bounds that proves the other.
        let (bounds, asked) = (self.operator.bounds(), condition.operator.bounds());
        let within = bounds.intervals.intersect(&asked.intervals) == bounds.intervals;
        asked.exact == Exactness::Always && !self.path.has_position() && within
    }
}
