//! Applies the tree of operators to the bytes of a document.

use std::borrow::Cow;

use super::{
    position::position,
    scope::{UpdateOutcome, UpdateScope},
    storage,
    tree::{self, Leaf, Named, UpdateNode},
};
use crate::{
    Code, Error, Result,
    path::order_of_siblings,
    raw::{Doc, Element, Kind, Value, Writer, digits},
    work,
};

/// Whether a document is the outermost one, whose field names are checked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Outermost,
    Nested,
}

/// The branches of the tree that apply to one value. There may be several, because `$` and `$[…]` can lead to the same
/// element.
pub(super) enum Nodes<'n> {
    One(&'n UpdateNode),
    Several(Vec<&'n UpdateNode>),
}

impl<'n> Nodes<'n> {
    pub(super) fn as_slice(&self) -> &[&'n UpdateNode] {
        match self {
            Self::One(node) => std::slice::from_ref(node),
            Self::Several(nodes) => nodes,
        }
    }

    fn push(&mut self, node: &'n UpdateNode) {
        match self {
            Self::One(first) => *self = Self::Several(vec![first, node]),
            Self::Several(nodes) => nodes.push(node),
        }
    }
}

/// A named branch, and whether its field was found in the document.
pub(super) struct Pending<'n> {
    pub(super) name: Cow<'n, str>,
    pub(super) nodes: Nodes<'n>,
    pub(super) met: Met,
}

/// Whether the field of a branch was found in the document. If not, operators may create it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Met {
    Yes,
    No,
}

/// The branches that apply to one value, by the kind that all of them have.
pub(super) enum Branches<'s, 'n> {
    Leaf(&'n Leaf),
    Named(Vec<&'n Named>),
    Each(&'s [&'n UpdateNode]),
}

/// Returns the branches by their kind. The branch of an operator must be the only one.
///
/// # Errors
/// `ConflictingUpdateOperators` (40) if they cannot be combined.
pub(super) fn place<'s, 'n>(nodes: &'s [&'n UpdateNode]) -> Result<Branches<'s, 'n>> {
    let named = |node: &&'n UpdateNode| match node {
        UpdateNode::Named(named) => Some(named),
        UpdateNode::Each(_) | UpdateNode::Leaf(_) => None,
    };
    if let [UpdateNode::Leaf(leaf)] = nodes {
        return Ok(Branches::Leaf(leaf));
    }
    if let Some(named) = nodes.iter().map(named).collect() {
        return Ok(Branches::Named(named));
    }
    match nodes.iter().all(|node| matches!(node, UpdateNode::Each(_))) {
        true => Ok(Branches::Each(nodes)),
        false => Err(tree::conflict(nodes.iter().find_map(|node| first_path(node)).unwrap_or_default())),
    }
}

/// Returns the path of an operator at or below the node, for messages.
fn first_path(node: &UpdateNode) -> Option<&str> {
    match node {
        UpdateNode::Leaf(leaf) => Some(leaf.path.as_str()),
        UpdateNode::Named(Named { children, positional }) => {
            children.values().chain(positional.as_deref()).find_map(first_path)
        }
        UpdateNode::Each(each) => each.0.iter().find_map(|(_, child)| first_path(child)),
    }
}

impl UpdateScope<'_> {
    /// Writes the new value under `name`, if it changes.
    fn value(&self, nodes: &[&UpdateNode], name: &[u8], value: Value<'_>, out: &mut Writer) -> Result<UpdateOutcome> {
        match place(nodes)? {
            Branches::Leaf(leaf) if !leaf.is_active(self.context) => Ok(UpdateOutcome::Unchanged),
            Branches::Leaf(leaf) => {
                leaf.operator.update(name, value, self, out).map_err(|error| error.at(leaf.path.as_str()))
            }
            Branches::Named(named) => {
                let checkpoint = out.checkpoint();
                let outcome = match value.kind() {
                    Kind::Document => {
                        out.open_document(name);
                        self.document(&named, Doc::new(value.bytes()), Level::Nested, out)?
                    }
                    Kind::Array => {
                        out.open_array(name);
                        self.positions(&named, Doc::new(value.bytes()), out)?
                    }
                    _ => {
                        self.blocked(nodes)?;
                        UpdateOutcome::Unchanged
                    }
                };
                if outcome == UpdateOutcome::Changed {
                    out.close();
                } else {
                    out.rollback(checkpoint);
                }
                Ok(outcome)
            }
            Branches::Each(nodes) => {
                let array = value.as_array().ok_or_else(|| {
                    let message =
                        format!("array updates cannot be applied to a value of type {}", value.kind().alias());
                    let path = nodes.iter().find_map(|node| first_path(node)).unwrap_or_default();
                    Error::new(Code::BAD_VALUE, message).at(path)
                })?;
                let checkpoint = out.checkpoint();
                out.open_array(name);
                let outcome = self.each(nodes, array, out)?;
                if outcome == UpdateOutcome::Changed {
                    out.close();
                } else {
                    out.rollback(checkpoint);
                }
                Ok(outcome)
            }
        }
    }

    /// Writes the fields of a document that the caller opened.
    pub(super) fn document(
        &self,
        named: &[&Named],
        doc: Doc<'_>,
        level: Level,
        out: &mut Writer,
    ) -> Result<UpdateOutcome> {
        work::take(work::of_bytes(doc.bytes().len()))?;
        let mut pending = self.pending(named)?;
        let mut left = pending.len();
        let mut run = ElementRun::new(doc);
        for element in doc.elements() {
            if left == 0 {
                break;
            }
            let place = pending.binary_search_by(|pending| order_of_siblings(pending.name.as_bytes(), element.name));
            let branch = place.ok().and_then(|place| pending.get_mut(place)).filter(|branch| branch.met == Met::No);
            let Some(branch) = branch else {
                run.pass(element);
                continue;
            };
            // Only the first of repeated fields is updated.
            branch.met = Met::Yes;
            left -= 1;
            let nodes = branch.nodes.as_slice();
            let outcome = run.replace(element, out, |out| self.value(nodes, element.name, element.value, out))?;
            if level == Level::Outermost && outcome != UpdateOutcome::Unchanged {
                storage::check_changed(&branch.name, nodes, self.context)?;
            }
        }
        run.finish(out);
        let mut outcome = run.outcome;
        for missing in pending.iter().filter(|pending| pending.met == Met::No) {
            if self.create(missing.nodes.as_slice(), missing.name.as_bytes(), out)? == UpdateOutcome::Changed {
                outcome = UpdateOutcome::Changed;
                if level == Level::Outermost {
                    storage::check_created(&missing.name, self.context)?;
                }
            }
        }
        Ok(outcome)
    }

    /// Writes the elements of an array that the caller opened; updates those at the positions that are the names of
    /// branches.
    fn positions(&self, named: &[&Named], array: Doc<'_>, out: &mut Writer) -> Result<UpdateOutcome> {
        work::take(work::of_bytes(array.bytes().len()))?;
        let mut pending = Vec::new();
        for place in self.pending(named)? {
            match position(&place.name) {
                Some(position) => pending.push((position, place)),
                None => self.blocked(place.nodes.as_slice())?,
            }
        }
        work::sort_by(&mut pending, |(a, _), (b, _)| a.cmp(b));
        let mut pending = pending.into_iter().peekable();
        let mut run = ElementRun::new(array);
        let mut length = 0;
        for element in array.elements() {
            if pending.peek().is_none() {
                break;
            }
            match pending.next_if(|(position, _)| *position == length) {
                None => run.pass(element),
                Some((_, Pending { nodes, .. })) => {
                    run.replace(element, out, |out| self.element(nodes.as_slice(), length, element.value, out))?;
                    if let Some((_, double)) = pending.next_if(|(position, _)| *position == length) {
                        return Err(tree::conflict(&double.name));
                    }
                }
            }
            length += 1;
        }
        run.finish(out);
        let mut outcome = run.outcome;
        for (position, place) in pending {
            let checkpoint = out.checkpoint();
            let padding = position.saturating_sub(length);
            if padding <= MAX_PADDING {
                (length..position).for_each(|position| out.append(digits(position).as_bytes(), Value::NULL));
            }
            if self.create(place.nodes.as_slice(), digits(position).as_bytes(), out)? != UpdateOutcome::Changed {
                out.rollback(checkpoint);
                continue;
            }
            if padding > MAX_PADDING {
                let message = format!("an array is not padded by more than {MAX_PADDING} elements");
                return Err(Error::new(Code::CANNOT_BACKFILL_ARRAY, message).at(&*place.name));
            }
            outcome = UpdateOutcome::Changed;
            length = position + 1;
        }
        Ok(outcome)
    }

    /// Writes the elements of an array that the caller opened; updates those that the branches' selectors select.
    fn each(&self, nodes: &[&UpdateNode], array: Doc<'_>, out: &mut Writer) -> Result<UpdateOutcome> {
        work::take(work::of_bytes(array.bytes().len()))?;
        let mut run = ElementRun::new(array);
        for (position, element) in array.elements().enumerate() {
            let children = nodes.iter().flat_map(|node| match node {
                UpdateNode::Each(each) => each.0.as_slice(),
                UpdateNode::Named(_) | UpdateNode::Leaf(_) => &[],
            });
            let mut selected: Vec<&UpdateNode> = Vec::new();
            for (selector, child) in children {
                if self.filters.selects(*selector, element.value)? {
                    selected.push(child);
                }
            }
            if selected.is_empty() {
                run.pass(element);
            } else {
                run.replace(element, out, |out| self.element(&selected, position, element.value, out))?;
            }
        }
        run.finish(out);
        Ok(run.outcome)
    }

    /// Writes the new value of an array element. A removed element becomes null.
    fn element(
        &self,
        nodes: &[&UpdateNode],
        position: usize,
        value: Value<'_>,
        out: &mut Writer,
    ) -> Result<UpdateOutcome> {
        let name = digits(position);
        let outcome = self.value(nodes, name.as_bytes(), value, out)?;
        if outcome == UpdateOutcome::Removed {
            out.append(name.as_bytes(), Value::NULL);
            return Ok(UpdateOutcome::Changed);
        }
        Ok(outcome)
    }

    /// Returns the named children of several branches in the order of their names. `$` becomes the position at which the filter matched; fails with
    /// `BadValue` (2) if there is none.
    pub(super) fn pending<'n>(&self, named: &[&'n Named]) -> Result<Vec<Pending<'n>>> {
        work::take(named.iter().map(|named| named.children.len()).sum())?;
        let mut pending = Vec::<Pending<'n>>::new();
        let mut add = |name: Cow<'n, str>, node: &'n UpdateNode| match pending
            .binary_search_by(|other| order_of_siblings(other.name.as_bytes(), name.as_bytes()))
        {
            Ok(place) => {
                if let Some(same) = pending.get_mut(place) {
                    same.nodes.push(node);
                }
            }
            Err(place) => pending.insert(place, Pending { name, nodes: Nodes::One(node), met: Met::No }),
        };
        for Named { children, positional } in named {
            children.iter().for_each(|(name, node)| add(Cow::Borrowed(name.as_str()), node));
            if let Some(node) = positional {
                let position = self.context.position.ok_or_else(|| {
                    let message = "the positional operator '$' found no array position in the filter's match";
                    Error::new(Code::BAD_VALUE, message).at(first_path(node).unwrap_or_default())
                })?;
                add(Cow::Owned(digits(position).as_str().to_owned()), node);
            }
        }
        Ok(pending)
    }
}

/// The most nulls that fill an array up to a position beyond its end, as in MongoDB.
const MAX_PADDING: usize = 1_500_000;

/// Copies unchanged elements in runs.
struct ElementRun<'a> {
    bytes: &'a [u8],
    /// Start of the run of unchanged elements that is not copied yet.
    start: usize,
    end: usize,
    outcome: UpdateOutcome,
}

impl<'a> ElementRun<'a> {
    fn new(doc: Doc<'a>) -> Self {
        Self { bytes: doc.bytes(), start: 4, end: 4, outcome: UpdateOutcome::Unchanged }
    }

    /// Adds the element to the run.
    fn pass(&mut self, element: Element<'_>) {
        self.end += 2 + element.name.len() + element.value.bytes().len();
    }

    /// Replaces the element by what `write` writes. It stays in the run if `write` returns `Unchanged`.
    fn replace(
        &mut self,
        element: Element<'_>,
        out: &mut Writer,
        write: impl FnOnce(&mut Writer) -> Result<UpdateOutcome>,
    ) -> Result<UpdateOutcome> {
        out.append_raw(self.bytes.get(self.start..self.end).unwrap_or_default());
        self.start = self.end;
        self.pass(element);
        let outcome = write(out)?;
        if outcome != UpdateOutcome::Unchanged {
            self.start = self.end;
            self.outcome = UpdateOutcome::Changed;
        }
        Ok(outcome)
    }

    /// Copies the run and all elements after it.
    fn finish(&mut self, out: &mut Writer) {
        let end = self.bytes.len().saturating_sub(1);
        out.append_raw(self.bytes.get(self.start..end).unwrap_or_default());
        self.start = end;
    }
}
