use std::{ops::ControlFlow, sync::Arc};

use super::{
    Node,
    field::{Field, Sense},
    node::Tree,
    operator::Cost,
    operators,
};
use crate::{
    order,
    path::{Found, Path, Step},
    raw::{Doc, Kind, OwnedValue, Value},
    value_set::ValueSet,
    work,
};

/// Conditions that must all hold.
///
/// The conditions on paths are called probes. In a document with a field table each probe looks up its own field, the
/// cheap ones first. In a document without one, a single pass over the fields serves all probes: a cheap probe is
/// evaluated as soon as the pass reaches its field, and the first that fails ends the pass. Expensive probes remember the
/// value and are evaluated after the pass. Nested logical conditions come last.
#[derive(Clone, Debug, Default)]
pub(super) struct Conjunction {
    nodes: Arc<[Node]>,
    /// Positions in `nodes` of the conditions that are evaluated as soon as the pass reaches their field.
    cheap: Places,
    /// Positions in `nodes` of the conditions that are evaluated after the pass, if all cheap ones hold; at most
    /// [`SLOTS`].
    expensive: Places,
    /// The same condition, if it is a long list of equalities on one path, or of their negations.
    together: Option<Arc<Together>>,
    /// Whether an evaluation counts the conditions as work: there are many, or a condition contains others.
    counts: bool,
    computes: bool,
}

/// Up to this number of conditions on fields, an evaluation is not counted as work.
const FEW: usize = 8;

/// The most conditions that wait for the end of the pass with their value. Further expensive ones are evaluated during
/// the pass.
const SLOTS: u32 = 4;

/// A set of places among the first 64 nodes, as bits. Later nodes are never probes.
#[derive(Clone, Copy, Debug, Default)]
struct Places(u64);

impl Places {
    fn insert(&mut self, place: usize) {
        self.0 |= 1 << place;
    }

    fn remove(&mut self, place: usize) {
        self.0 &= !(1 << place);
    }

    fn contains(self, place: usize) -> bool {
        place < u64::BITS as usize && self.0 & (1 << place) != 0
    }

    fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Returns how many places of the set are less than this one.
    fn rank(self, place: usize) -> usize {
        (self.0 & ((1 << place) - 1)).count_ones() as usize
    }

    fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Iterator for Places {
    type Item = usize;

    /// Removes and returns the smallest place.
    #[inline]
    fn next(&mut self) -> Option<usize> {
        let place = self.0.trailing_zeros() as usize;
        self.0 &= self.0.checked_sub(1)?;
        Some(place)
    }
}

/// Conditions on one path that are evaluated together, instead of each on every value.
#[derive(Clone, Debug)]
enum Together {
    /// None of the values is at the path.
    None(Field),
    /// Each of the values is at the path.
    All(Path, ValueSet<OwnedValue>),
}

impl Together {
    fn of(nodes: &[Node]) -> Option<Self> {
        if let Some(none) = operators::of_equalities(nodes, Sense::Fails) {
            return Some(Self::None(none));
        }
        let (path, values) = operators::equal_values(nodes, Sense::Holds)?;
        // A missing field equals null.
        let is_null = |value: &OwnedValue| value.as_value().kind() == Kind::Null;
        (!values.as_slice().iter().any(is_null)).then(|| Self::All(path.clone(), values))
    }

    fn matches(&self, doc: Doc<'_>) -> bool {
        match self {
            Self::None(none) => none.matches(doc),
            Self::All(path, values) => has_all(path, values, doc),
        }
    }

    fn matches_value(&self, value: Value<'_>) -> bool {
        match self {
            Self::None(none) => none.matches_value(value),
            Self::All(_, values) => values.as_slice().iter().all(|other| order::equal(value, other.as_value())),
        }
    }
}

/// Returns whether each of the values is at the path, or is an element of an array there.
fn has_all(path: &Path, values: &ValueSet<OwnedValue>, doc: Doc<'_>) -> bool {
    // Whether each value was found; empty until there is a value at the path.
    let (mut found, mut left) = (Vec::new(), values.as_slice().len());
    let walked = path.walk(doc, &mut |end| {
        let Found::Value(value) = end.found else { return ControlFlow::Continue(()) };
        let elements = value.as_array().filter(|_| end.step == Step::Name);
        if !work::spend(work::of_bytes(value.bytes().len())) {
            return ControlFlow::Break(());
        }
        for value in elements.into_iter().flat_map(Doc::values).chain([value]) {
            let Some(place) = values.place_of(value) else { continue };
            found.resize(values.as_slice().len(), false);
            if let Some(found) = found.get_mut(place).filter(|found| !**found) {
                *found = true;
                left -= 1;
            }
            if left == 0 {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    });
    walked.is_break() && left == 0
}

impl Conjunction {
    pub(super) fn new(nodes: Vec<Node>) -> Self {
        let (mut cheap, mut expensive) = (Places::default(), Places::default());
        for (place, node) in nodes.iter().enumerate().take(u64::BITS as usize) {
            match &node.tree {
                Tree::Field(field) if field.cost() == Cost::Expensive && expensive.len() < SLOTS => {
                    expensive.insert(place);
                }
                Tree::Field(_) => cheap.insert(place),
                Tree::And(_) | Tree::Or(_) | Tree::Not(_) | Tree::Computed(_) | Tree::Schema(_) | Tree::Collated(_) => {
                }
            }
        }
        let computes = nodes.iter().any(Node::computes);
        let counts = nodes.len() > FEW || nodes.iter().any(|node| !matches!(node.tree, Tree::Field(_)));
        // An empty list is not allocated.
        let nodes = if nodes.is_empty() { Arc::default() } else { nodes.into() };
        let together = Together::of(&nodes).map(Arc::new);
        Self { nodes, cheap, expensive, together, counts, computes }
    }

    /// As [`Node::computes`].
    pub(super) fn computes(&self) -> bool {
        self.computes
    }

    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Counts an evaluation as work. Returns `false` if the call ended early.
    #[inline]
    fn begin(&self) -> bool {
        !self.counts || work::spend(self.nodes.len())
    }

    /// Returns whether the value itself satisfies the conditions; paths are ignored.
    pub(super) fn matches_value(&self, value: Value<'_>) -> bool {
        match &self.together {
            Some(together) => together.matches_value(value),
            None => self.begin() && self.nodes.iter().all(|node| node.matches_value(value)),
        }
    }

    pub(super) fn matches(&self, doc: Doc<'_>) -> bool {
        if let Some(together) = &self.together {
            return together.matches(doc);
        }
        if !self.begin() {
            return false;
        }
        let probes = self.cheap.union(self.expensive);
        self.probes_match(doc)
            && self.nodes.iter().enumerate().all(|(place, node)| probes.contains(place) || node.matches(doc))
    }

    #[inline]
    fn probe(&self, place: usize) -> Option<&Field> {
        match &self.nodes.get(place)?.tree {
            Tree::Field(field) => Some(field),
            Tree::And(_) | Tree::Or(_) | Tree::Not(_) | Tree::Computed(_) | Tree::Schema(_) | Tree::Collated(_) => None,
        }
    }

    fn probes_match(&self, doc: Doc<'_>) -> bool {
        let mut pending = self.cheap.union(self.expensive);
        if doc.has_table() || pending.len() < 2 {
            return self.cheap.chain(self.expensive).filter_map(|place| self.probe(place)).all(|it| it.matches(doc));
        }
        let (mut slots, mut compared): ([Option<Value<'_>>; SLOTS as usize], _) = ([None; SLOTS as usize], 0);
        let mut may_match = true;
        'fields: for element in doc.elements() {
            // Counts one comparison of the field's name with each pending probe.
            compared += pending.len() as usize;
            for place in pending {
                let Some(probe) = self.probe(place).filter(|probe| probe.first() == element.name) else { continue };
                pending.remove(place);
                if self.expensive.contains(place) {
                    if let Some(slot) = slots.get_mut(self.expensive.rank(place)) {
                        *slot = Some(element.value);
                    }
                } else if !probe.matches_from(Some(element.value)) {
                    may_match = false;
                    break 'fields;
                }
            }
            if pending.len() == 0 {
                break;
            }
        }
        if !work::spend(compared / 8) || !may_match {
            return false;
        }
        let missing = pending.filter(|place| !self.expensive.contains(*place)).map(|place| (place, None));
        missing
            .chain(self.expensive.zip(slots))
            .all(|(place, value)| self.probe(place).is_none_or(|probe| probe.matches_from(value)))
    }
}
