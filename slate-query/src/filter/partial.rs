use super::{Filter, Node, clause::is_operators, field::Sense, node::Tree};
use crate::raw::{Doc, Element};

impl Filter {
    /// Returns whether the filter may be that of a partial index (`partialFilterExpression`). As in MongoDB it may
    /// consist of comparisons, `$in`, `$exists: true` and `$type`, joined by `$and` and `$or`.
    pub fn may_limit_an_index(&self) -> bool {
        may_limit(self.root())
    }
}

fn may_limit(node: &Node) -> bool {
    match &node.tree {
        Tree::And(conjunction) => conjunction.nodes().iter().all(may_limit),
        Tree::Or(branches) => branches.iter().all(may_limit),
        Tree::Not(_) | Tree::Computed(_) | Tree::Schema(_) => false,
        Tree::Collated(collated) => may_limit(collated.plain()),
        Tree::Field(field) => field.sense == Sense::Holds && field.operator.may_limit_an_index(),
    }
}

/// Returns the depth of a filter's tree, which MongoDB limits in partial indexes. A document of several conditions, `$and` and `$or` are
/// one level each; a document of one condition is none.
pub fn depth(filter: Doc<'_>) -> usize {
    let (mut conditions, mut deepest) = (0, 0);
    for element in filter.elements() {
        let (count, depth) = match element.name {
            b"$and" | b"$or" => (1, 1 + element.value.as_array().map_or(0, deepest_of)),
            b"$comment" => (0, 0),
            _ => (count_conditions(element), 1),
        };
        conditions += count;
        deepest = deepest.max(depth);
    }
    deepest + usize::from(conditions > 1)
}

fn deepest_of(clauses: Doc<'_>) -> usize {
    clauses.values().filter_map(|clause| clause.as_document()).map(depth).max().unwrap_or_default()
}

/// Returns the number of operators on a field.
fn count_conditions(field: Element<'_>) -> usize {
    let operators = field.value.as_document().filter(|_| is_operators(field.value));
    operators.map_or(1, |operators| operators.elements().count())
}
