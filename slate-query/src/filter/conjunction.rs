use super::{Node, field::Field, node::Tree, operator::Cost};
use crate::raw::{Doc, Value};

/// Conditions that must all hold, laid out so that one pass over a document's fields serves them.
///
/// In a document with a table of its fields, each condition goes to its own, the cheap ones first. In another, each field
/// of the document is visited once. Cheap conditions are asked as their field passes by, and the first that
/// fails ends it; dear ones wait with the value until the cheap ones have passed; joined conditions come last.
#[derive(Clone, Debug, Default)]
pub(super) struct Conjunction {
    nodes: Box<[Node]>,
    /// The conditions on paths, the dear ones first.
    probes: Box<[Field]>,
    /// How many of the probes wait.
    waiting: usize,
    /// Places in `nodes` of all others.
    others: Box<[usize]>,
}

/// How many dear conditions wait with their value; further ones are asked as cheap ones are.
const SLOTS: usize = 4;

impl Conjunction {
    pub(super) fn new(nodes: Vec<Node>) -> Self {
        let mut probes = Vec::new();
        let mut others = Vec::new();
        for (place, node) in nodes.iter().enumerate() {
            match &node.tree {
                // One bit of a word says whether a probe is pending.
                Tree::Field(field) if probes.len() < u64::BITS as usize => probes.push(field.clone()),
                Tree::And(_) | Tree::Or(_) | Tree::Not(_) | Tree::Field(_) => others.push(place),
            }
        }
        probes.sort_by_key(|field| std::cmp::Reverse(field.cost()));
        let waiting = probes.iter().take(SLOTS).filter(|field| field.cost() == Cost::Dear).count();
        Self { probes: probes.into(), waiting, others: others.into(), nodes: nodes.into() }
    }

    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub(super) fn into_nodes(self) -> impl Iterator<Item = Node> {
        self.nodes.into_iter()
    }

    pub(super) fn matches(&self, doc: Doc<'_>) -> bool {
        self.probes_match(doc)
            && self.others.iter().all(|&place| self.nodes.get(place).is_some_and(|it| it.matches(doc)))
    }

    fn probes_match(&self, doc: Doc<'_>) -> bool {
        if doc.has_table() || self.probes.len() < 2 {
            // The cheap ones first, which stand behind.
            return self.probes.iter().rev().all(|field| field.matches(doc));
        }
        let mut pending = u64::MAX >> (u64::BITS as usize - self.probes.len());
        let mut slots: [Option<Value<'_>>; SLOTS] = [None; SLOTS];
        for element in doc.elements() {
            for (place, field) in self.probes.iter().enumerate() {
                if pending & (1 << place) == 0 || field.first() != element.name {
                    continue;
                }
                pending &= !(1 << place);
                match slots.get_mut(place).filter(|_| place < self.waiting) {
                    Some(slot) => *slot = Some(element.value),
                    None if field.matches_from(Some(element.value)) => {}
                    None => return false,
                }
            }
            if pending == 0 {
                break;
            }
        }
        let cheap = self.probes.iter().enumerate().skip(self.waiting);
        let waiting = self.probes.iter().take(self.waiting).zip(slots);
        cheap.filter(|(place, _)| pending & (1 << place) != 0).all(|(_, field)| field.matches_from(None))
            && waiting.into_iter().all(|(field, value)| field.matches_from(value))
    }
}
