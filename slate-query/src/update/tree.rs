//! The operators of an update as a tree of paths.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, btree_map::Entry},
    vec,
};

use super::{Context, Phase, array_filter::Selector, operator::Operator, step::PathStep};
use crate::{
    Code, Error, Result,
    path::{Part, Path, order_of_siblings},
    raw::SmallBytes,
};

/// A node of the tree: a path that an operator changes, or a prefix of one.
#[derive(Debug)]
pub(super) enum UpdateNode {
    /// Fields of a document or positions of an array, by name.
    Named(Named),
    /// Elements of an array, by selector.
    Each(Each),
    /// The operator for this path.
    Leaf(Leaf),
}

/// Children by name.
#[derive(Debug, Default)]
pub(super) struct Named {
    pub(super) children: BTreeMap<SiblingName, UpdateNode>,
    /// The child for `$`.
    pub(super) positional: Option<Box<UpdateNode>>,
}

/// A name, ordered by [`order_of_siblings`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SiblingName(SmallBytes);

impl SiblingName {
    pub(super) fn new(name: &str) -> Self {
        Self(name.as_bytes().into())
    }

    pub(super) fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl Named {
    /// Returns the child for the field of this name.
    pub(super) fn child(&self, name: &Part) -> Option<&UpdateNode> {
        self.children.get(&SiblingName::new(name.name()))
    }
}

impl Ord for SiblingName {
    fn cmp(&self, other: &Self) -> Ordering {
        order_of_siblings(&self.0, &other.0)
    }
}

impl PartialOrd for SiblingName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Children by selector, in the selectors' order.
#[derive(Debug, Default)]
pub(super) struct Each(pub(super) Vec<(Selector, UpdateNode)>);

/// An operator with its path.
#[derive(Debug)]
pub(super) struct Leaf {
    /// The path as written, for messages.
    pub(super) path: Path,
    pub(super) operator: Box<dyn Operator>,
    pub(super) acts: Acts,
}

/// When an operator applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Acts {
    Always,
    /// Only if the document is being inserted.
    OnInsert,
}

impl Leaf {
    /// Returns whether the operator applies in this context.
    pub(super) fn is_active(&self, context: &Context) -> bool {
        self.acts == Acts::Always || context.phase == Phase::Insert
    }
}

impl UpdateNode {
    /// Creates a tree without operators.
    pub(super) fn root() -> Self {
        Self::Named(Named::default())
    }

    /// Adds a leaf at the end of `steps`.
    ///
    /// # Errors
    /// `ConflictingUpdateOperators` (40) if another operator has the same path, a prefix of it, or a longer one.
    pub(super) fn insert(&mut self, steps: Vec<PathStep>, leaf: Leaf) -> Result<()> {
        let path = leaf.path.clone();
        self.put(steps.into_iter(), leaf).ok_or_else(|| conflict(path.as_str()))
    }

    /// Adds the leaf; `None` on a conflict.
    fn put(&mut self, mut steps: vec::IntoIter<PathStep>, leaf: Leaf) -> Option<()> {
        let step = steps.next()?;
        let child = match (self, step) {
            (Self::Named(named), PathStep::Positional) => match &mut named.positional {
                Some(child) => child,
                vacant => {
                    *vacant = Some(Box::new(Self::fresh(steps, leaf)?));
                    return Some(());
                }
            },
            (Self::Named(named), PathStep::Name(name)) => match named.children.entry(name) {
                Entry::Occupied(child) => child.into_mut(),
                Entry::Vacant(vacant) => {
                    vacant.insert(Self::fresh(steps, leaf)?);
                    return Some(());
                }
            },
            (Self::Each(Each(children)), PathStep::Each(selector)) => {
                match children.binary_search_by_key(&selector, |(other, _)| *other) {
                    Ok(place) => &mut children.get_mut(place)?.1,
                    Err(place) => {
                        children.insert(place, (selector, Self::fresh(steps, leaf)?));
                        return Some(());
                    }
                }
            }
            (Self::Leaf(_), _)
            | (Self::Each(_), PathStep::Name(_) | PathStep::Positional)
            | (Self::Named(_), PathStep::Each(_)) => {
                return None;
            }
        };
        child.put(steps, leaf)
    }

    /// Creates a new branch along `steps` that ends in the leaf.
    fn fresh(steps: vec::IntoIter<PathStep>, leaf: Leaf) -> Option<Self> {
        let mut node = match steps.as_slice().first() {
            None => return Some(Self::Leaf(leaf)),
            Some(PathStep::Each(_)) => Self::Each(Each::default()),
            Some(PathStep::Name(_) | PathStep::Positional) => Self::Named(Named::default()),
        };
        node.put(steps, leaf)?;
        Some(node)
    }
}

/// Returns the error for two operators on one path.
pub(super) fn conflict(path: &str) -> Error {
    Error::new(Code::CONFLICTING_UPDATE_OPERATORS, "the update's operators conflict here").at(path)
}
