//! The operators of an update as a tree of paths.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, btree_map::Entry},
};

use super::{Context, Phase, array_filter::Selector, operator::Operator, step::PathStep};
use crate::{Code, Error, Result, path::order_of_siblings};

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
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SiblingName(pub(super) Box<str>);

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
    pub(super) path: Box<str>,
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
    pub(super) fn insert(&mut self, steps: &[PathStep], leaf: Leaf) -> Result<()> {
        let path = leaf.path.clone();
        self.put(steps, leaf).ok_or_else(|| conflict(&path))
    }

    /// Returns `None` on a conflict.
    fn put(&mut self, steps: &[PathStep], leaf: Leaf) -> Option<()> {
        let (step, rest) = steps.split_first()?;
        let child = match (self, step) {
            (Self::Named(named), PathStep::Positional) => match &mut named.positional {
                Some(child) => child,
                vacant => {
                    *vacant = Some(Box::new(Self::fresh(rest, leaf)?));
                    return Some(());
                }
            },
            (Self::Named(named), PathStep::Name(name)) => match named.children.entry(SiblingName(name.clone())) {
                Entry::Occupied(child) => child.into_mut(),
                Entry::Vacant(vacant) => {
                    vacant.insert(Self::fresh(rest, leaf)?);
                    return Some(());
                }
            },
            (Self::Each(Each(children)), PathStep::Each(selector)) => {
                match children.binary_search_by_key(selector, |(other, _)| *other) {
                    Ok(place) => &mut children.get_mut(place)?.1,
                    Err(place) => {
                        children.insert(place, (*selector, Self::fresh(rest, leaf)?));
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
        child.put(rest, leaf)
    }

    /// Creates a new branch along `steps` that ends in the leaf.
    fn fresh(steps: &[PathStep], leaf: Leaf) -> Option<Self> {
        let mut node = match steps.first() {
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
