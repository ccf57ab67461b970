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
        let mut terms = Vec::new();
        self.each_term(&mut |term| terms.push(term));
        terms
    }

    /// Hands over the [`Node::terms`], one by one.
    pub fn each_term(&self, take: &mut dyn FnMut(Term)) {
        let take = &mut |term: Term| {
            if !term.intervals.is_all() {
                take(term);
            }
        };
        match &self.tree {
            Tree::Field(field) => of_field(field, take),
            Tree::And(conjunction) => {
                conjunction.nodes().iter().for_each(|node| node.each_term(&mut |term| take(term.loose())));
            }
            Tree::Or(nodes) => of_branches(nodes).into_iter().for_each(take),
            Tree::Not(_) => {}
        }
    }

    /// The path that all its terms are on, where that is known without making them.
    pub fn only_path(&self) -> Option<&Path> {
        match &self.tree {
            Tree::Field(field) if field.operator.element_conditions().is_none() => Some(&field.path),
            Tree::Field(_) | Tree::And(_) | Tree::Or(_) | Tree::Not(_) => None,
        }
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

fn of_field(field: &Field, take: &mut dyn FnMut(Term)) {
    if field.path.has_position() && field.operator.reach() == Reach::Whole {
        // It asks of an array's elements, and an array found by its position has its own key, not theirs.
        return;
    }
    match field.sense {
        Sense::Holds => {
            if let Some(conditions) = field.operator.element_conditions() {
                conditions.each_term(&mut |term| {
                    // An element may itself be an array, whose positions the conditions then name as fields; an index on
                    // them holds only what stands at those positions of the outer array.
                    if !term.path.has_position() {
                        term.loose().under(&field.path).into_iter().for_each(&mut *take);
                    }
                });
            }
            let bounds = field.operator.bounds();
            take(Term::new(&field.path, bounds.intervals, bounds.exact));
        }
        Sense::Fails => match field.operator.outside(&field.path) {
            Some(outside) => take(Term::new(&field.path, outside, Exactness::Never)),
            None if field.path.has_position() => {}
            None => {
                let bounds = field.operator.bounds();
                // Where a key within the bounds proves the operator, a document that fails it has none there.
                if bounds.exact == Exactness::Always {
                    take(Term::new(&field.path, bounds.intervals.complement(), Exactness::WhereNotMultikey));
                }
            }
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
