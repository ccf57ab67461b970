use std::collections::{HashMap, hash_map::Entry};

use super::{
    Node,
    bounds::Exactness,
    clause,
    field::{Field, Sense},
    node::Tree,
    operator::Reach,
};
use crate::{
    collation::{Collation, has_text},
    interval::{Interval, IntervalSet},
    path::Path,
    raw::{Kind, Value, Writer},
    work,
};

/// The key range that a condition implies for an index on one path.
#[derive(Clone, Debug)]
pub struct Term {
    /// The path of the index.
    pub path: Path,
    /// An ascending index on exactly this path contains an entry within these intervals for each matching document.
    pub intervals: IntervalSet,
    /// Whether entries within the intervals imply the condition.
    pub exact: Exactness,
    /// On which indexes the intervals may be used as bounds.
    pub validity: Validity,
}

/// On which indexes the intervals of a [`Term`] may be used as bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Validity {
    /// Indexes in which no document has an array on the index's path.
    WhereNotMultikey,
    /// All indexes.
    Always,
}

impl Node {
    /// Returns the key ranges that the node implies, by path. A document matches only if an index on exactly that path
    /// contains an entry of it within the intervals.
    ///
    /// Terms of one node on one path may be satisfied by different entries, so they may be intersected only where the
    /// index is not multikey.
    pub fn terms(&self) -> Vec<Term> {
        self.terms_within(Strings::Bytes)
    }

    /// Calls `take` with each of the [`Node::terms`] for an index with the collation `index`; `None` for an index that contains
    /// strings as they are. A condition on strings has no term for an index whose collation differs from the condition's.
    pub fn each_term(&self, index: Option<&Collation>, take: &mut dyn FnMut(Term)) {
        match index {
            Some(collation) if collation.replaces_code() => {
                // The index has code among the strings; the conditions distinguish them.
                self.each_term_within(Strings::SortKeys(collation), &mut |term| take(term.loose()));
            }
            _ => self.each_term_within(index.map_or(Strings::Bytes, Strings::SortKeys), take),
        }
    }

    fn terms_within(&self, strings: Strings<'_>) -> Vec<Term> {
        let mut terms = Vec::new();
        self.each_term_within(strings, &mut |term| terms.push(term));
        terms
    }

    fn each_term_within(&self, strings: Strings<'_>, take: &mut dyn FnMut(Term)) {
        let take = &mut |term: Term| {
            if !term.intervals.is_all() {
                take(term);
            }
        };
        match &self.tree {
            Tree::Field(field) => of_field(field, strings, take),
            Tree::And(conjunction) => of_conjuncts(conjunction.nodes(), strings, take),
            Tree::Or(nodes) => of_branches(nodes, strings).into_iter().for_each(take),
            Tree::Not(_) | Tree::Schema(_) => {}
            Tree::Collated(condition) => {
                if let Strings::SortKeys(collation) = strings
                    && let Some(replaced) = condition.by(collation)
                {
                    replaced.each_term_within(Strings::Replaced(collation), take);
                }
            }
            Tree::Computed(computed) => computed.each_term(strings, take),
        }
    }

    /// Returns the condition on `to` instead of `from`, if it is a condition on `from` that index keys decide exactly.
    pub(super) fn moved(&self, from: &Path, to: &Path) -> Option<Node> {
        let Tree::Field(field) = &self.tree else { return None };
        let is_exact = || matches!(&*self.terms(), [term] if term.exact >= Exactness::WhereNotMultikey);
        (field.path == *from && is_exact()).then(|| Self { tree: Tree::Field(field.on(to.clone())) })
    }

    /// Returns the common path of all terms, if it is known without computing them.
    pub fn only_path(&self) -> Option<&Path> {
        match &self.tree {
            Tree::Field(field) if field.operator.element_conditions().is_none() => Some(&field.path),
            Tree::Field(_)
            | Tree::And(_)
            | Tree::Or(_)
            | Tree::Not(_)
            | Tree::Computed(_)
            | Tree::Schema(_)
            | Tree::Collated(_) => None,
        }
    }
}

impl Term {
    fn new(path: &Path, intervals: IntervalSet, exact: Exactness) -> Self {
        // On a path that contains a position, an index may contain keys that the filter does not evaluate: the index expands an array found by
        // position, the filter evaluates it as a whole.
        let exact = if path.has_position() { exact.min(Exactness::WhereNotMultikey) } else { exact };
        Self { path: path.clone(), intervals, exact, validity: Validity::Always }
    }

    /// Returns the term with the same key range for a condition that requires more.
    pub(super) fn loose(self) -> Self {
        Self { exact: Exactness::Never, ..self }
    }

    /// Returns the term with the same key range for a field of an array's elements; `path` leads to the array.
    fn under(self, path: &Path) -> Option<Self> {
        let path = Path::parse(&format!("{path}.{}", self.path)).ok()?;
        Some(Self { path, ..self })
    }
}

/// How the conditions and the index represent strings.
#[derive(Clone, Copy, Debug)]
pub(super) enum Strings<'c> {
    /// Both as their bytes.
    Bytes,
    /// The index as sort keys, the conditions as bytes.
    SortKeys(&'c Collation),
    /// Both as sort keys.
    Replaced(&'c Collation),
}

impl Strings<'_> {
    /// Returns whether the index orders the operand's strings as the condition compares them, so that bounds can be
    /// made from the operand. True for a condition without strings.
    fn suit(self, field: &Field) -> bool {
        if matches!(self, Self::Bytes) {
            return true;
        }
        let mut out = Writer::new();
        field.operator.write(&mut out);
        let operator = out.finish();
        let operator = Value::new(Kind::Document, &operator);
        if let Self::SortKeys(collation) | Self::Replaced(collation) = self
            && collation.replaces_code()
            && is_on_code(operator)
        {
            return false;
        }
        let is_on_strings = matches!(self, Self::SortKeys(_)) && has_text(operator);
        !is_on_strings && !clause::reads_text(operator)
    }
}

/// Returns whether the operator can match code alone: it compares with code, or with a type.
fn is_on_code(operator: Value<'_>) -> bool {
    operator.kind() == Kind::Code
        || operator.as_container().is_some_and(|container| {
            container.elements().any(|element| element.name == b"$type" || is_on_code(element.value))
        })
}

fn of_field(field: &Field, strings: Strings<'_>, take: &mut dyn FnMut(Term)) {
    if !strings.suit(field) {
        return;
    }
    if field.path.has_position() && field.operator.reach() == Reach::Whole {
        // The operator is evaluated on the array, but an array found by position has its own key, not those of its
        // elements.
        return;
    }
    match field.sense {
        Sense::Holds => {
            if let Some(conditions) = field.operator.element_conditions() {
                conditions.each_term_within(strings, &mut |term| {
                    // An element may be an array, and the conditions use its positions as field names. An index on such
                    // a path contains only what is at these positions of the outer array.
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
                // Every key within exact bounds satisfies the operator, so a document that does not has no key there.
                if bounds.exact == Exactness::Always {
                    take(Term::new(&field.path, bounds.intervals.complement(), Exactness::WhereNotMultikey));
                }
            }
        },
    }
}

/// Calls `take` with the key ranges of nodes that must all hold.
pub(super) fn of_conjuncts(nodes: &[Node], strings: Strings<'_>, take: &mut dyn FnMut(Term)) {
    let loose = &mut |term: Term| take(term.loose());
    nodes.iter().for_each(|node| node.each_term_within(strings, loose));
}

/// Returns a term for each path for which every branch has a term. Its key range is the union of the key ranges of the branches.
pub(super) fn of_branches(nodes: &[Node], strings: Strings<'_>) -> Vec<Term> {
    let Some((first, rest)) = nodes.split_first() else { return Vec::new() };
    // Of several terms of a branch on one path the first counts.
    let (mut unions, mut places) = (Vec::<BranchUnion>::new(), HashMap::<Path, usize>::new());
    first.each_term_within(strings, &mut |term| {
        if let Entry::Vacant(vacant) = places.entry(term.path.clone()) {
            vacant.insert(unions.len());
            unions.push(BranchUnion { intervals: term.intervals.iter().cloned().collect(), term, branches: 1 });
        }
    });
    let mut left = unions.len();
    for (branches, node) in (1..).zip(rest) {
        if left == 0 || !work::spend(8) {
            return Vec::new();
        }
        left = 0;
        node.each_term_within(strings, &mut |other| {
            work::spend(8);
            let union = places.get(&other.path).and_then(|place| unions.get_mut(*place));
            if let Some(union) = union.filter(|union| union.branches == branches) {
                union.add(&other);
                left += 1;
            }
        });
    }
    let complete = unions.into_iter().filter(|union| union.branches == nodes.len());
    complete.map(|union| Term { intervals: IntervalSet::from(union.intervals), ..union.term }).collect()
}

/// The union of the terms that the branches so far have on one path.
struct BranchUnion {
    /// The term of the first branch, as exact and as valid as those of all branches.
    term: Term,
    intervals: Vec<Interval>,
    /// The number of branches, from the first on, that have a term on the path.
    branches: usize,
}

impl BranchUnion {
    fn add(&mut self, other: &Term) {
        self.intervals.extend(other.intervals.iter().cloned());
        self.term.exact = self.term.exact.min(other.exact);
        self.term.validity = self.term.validity.min(other.validity);
        self.branches += 1;
    }
}
