use super::{
    Node,
    field::{Field, Sense},
    node::Tree,
    operator::Reach,
};
use crate::{interval::IntervalSet, path::Path};

/// What a conjunct says of one path.
#[derive(Clone, Debug)]
pub struct Term {
    /// The path.
    pub path: Path,
    /// Where an ascending index on exactly that path holds an entry of each document that matches.
    pub intervals: IntervalSet,
    /// Whether the intervals say it all.
    pub exact: Exactness,
}

/// Whether an entry within a term's intervals proves its conjunct, so that the conjunct need not be asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exactness {
    /// It does not.
    Never,
    /// It does where the index's path holds no array in any document.
    WhereNotMultikey,
    /// It does.
    Always,
}

impl Node {
    /// What the node says of single paths: for each term, a document matches only where an index on exactly that path
    /// holds an entry of it within the intervals. Paths of which it says nothing are left out.
    ///
    /// Terms of one node on one path must not be intersected unless the index is not multikey there: they may speak of
    /// different entries.
    pub fn terms(&self) -> Vec<Term> {
        let mut terms = match &self.tree {
            Tree::Field(field) => of_field(field),
            Tree::And(conjunction) => conjunction.nodes().iter().flat_map(Node::terms).map(Term::loose).collect(),
            Tree::Or(nodes) => of_branches(nodes),
            Tree::Not(_) => Vec::new(),
        };
        terms.retain(|term| !term.intervals.is_all());
        terms
    }
}

impl Term {
    fn new(path: &Path, intervals: IntervalSet, exact: Exactness) -> Self {
        // Under a path that spells a position, an index may hold keys that the filter does not see: it expands arrays
        // found by position, the filter takes them whole.
        let exact = if path.has_position() { exact.min(Exactness::WhereNotMultikey) } else { exact };
        Self { path: path.clone(), intervals, exact }
    }

    /// The same keys, as a part of a condition that says more.
    fn loose(self) -> Self {
        Self { exact: Exactness::Never, ..self }
    }

    /// The same for elements' fields: `path` leads to the array.
    fn under(self, path: &Path) -> Option<Self> {
        let path = Path::parse(&format!("{path}.{}", self.path)).ok()?;
        Some(Self { path, ..self })
    }
}

fn of_field(field: &Field) -> Vec<Term> {
    if field.path.has_position() && field.operator.reach() == Reach::Whole {
        // It asks of an array's elements, and an array found by its position has its own key, not theirs.
        return Vec::new();
    }
    let bounds = field.operator.bounds();
    match field.sense {
        Sense::Holds => {
            let elements = field.operator.element_conditions();
            // An element may itself be an array, whose positions the conditions then name as fields; an index on them
            // holds only what stands at those positions of the outer array.
            let below = elements.into_iter().flat_map(Node::terms).filter(|term| !term.path.has_position());
            let mut terms: Vec<Term> = below.filter_map(|term| term.loose().under(&field.path)).collect();
            terms.push(Term::new(&field.path, bounds.intervals, bounds.exact));
            terms
        }
        Sense::Fails => match field.operator.outside(&field.path) {
            Some(outside) => vec![Term::new(&field.path, outside, Exactness::Never)],
            // Where a key within the bounds proves the operator, a document that fails it has none there.
            None if bounds.exact == Exactness::Always && !field.path.has_position() => {
                vec![Term::new(&field.path, bounds.intervals.complement(), Exactness::WhereNotMultikey)]
            }
            None => Vec::new(),
        },
    }
}

/// The paths of which every branch says something: an entry lies where one of the branches puts it.
fn of_branches(nodes: &[Node]) -> Vec<Term> {
    let Some((first, rest)) = nodes.split_first() else { return Vec::new() };
    let rest: Vec<Vec<Term>> = rest.iter().map(Node::terms).collect();
    let mut terms: Vec<Term> = Vec::new();
    for term in first.terms() {
        if terms.iter().any(|other| other.path == term.path) {
            continue;
        }
        let union = rest.iter().try_fold(term, |union, terms| {
            let other = terms.iter().find(|other| other.path == union.path)?;
            let intervals = union.intervals.union(&other.intervals);
            Some(Term { intervals, exact: union.exact.min(other.exact), path: union.path })
        });
        terms.extend(union);
    }
    terms
}
