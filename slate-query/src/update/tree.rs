//! The operators of an update, by the paths they act on.

use std::cmp::Ordering;

use super::{Context, Phase, array_filter::Selector, operator::Operator, step::Step};
use crate::{Code, Error, Result};

/// A place that an update names, or that leads to such places.
#[derive(Debug)]
pub(super) enum Node {
    /// Fields of a document, or positions of an array, by name.
    Named(Named),
    /// Elements of an array, by selector.
    Each(Each),
    /// The operator that acts here.
    Leaf(Leaf),
}

/// Named places.
#[derive(Debug, Default)]
pub(super) struct Named {
    /// In [`order`].
    pub(super) children: Vec<(Box<str>, Node)>,
    /// What stands at `$`.
    pub(super) positional: Option<Box<Node>>,
}

/// Places by selector, in the selectors' order.
#[derive(Debug, Default)]
pub(super) struct Each(pub(super) Vec<(Selector, Node)>);

/// An operator at its place.
#[derive(Debug)]
pub(super) struct Leaf {
    /// The path as written, for messages.
    pub(super) path: Box<str>,
    pub(super) operator: Box<dyn Operator>,
    pub(super) acts: Acts,
}

/// When an operator acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Acts {
    Always,
    /// Only where the document is being inserted.
    OnInsert,
}

impl Leaf {
    /// Whether the operator acts now.
    pub(super) fn is_active(&self, context: &Context) -> bool {
        self.acts == Acts::Always || context.phase == Phase::Insert
    }
}

impl Node {
    /// The tree of no operators.
    pub(super) fn root() -> Self {
        Self::Named(Named::default())
    }

    /// Puts a leaf at the end of `steps`.
    ///
    /// # Errors
    /// `ConflictingUpdateOperators` (40) where another operator acts there, above or below.
    pub(super) fn insert(&mut self, steps: &[Step], leaf: Leaf) -> Result<()> {
        let path = leaf.path.clone();
        self.put(steps, leaf).ok_or_else(|| conflict(&path))
    }

    /// `None` on a conflict.
    fn put(&mut self, steps: &[Step], leaf: Leaf) -> Option<()> {
        let (step, rest) = steps.split_first()?;
        let child = match (self, step) {
            (Self::Named(named), Step::Positional) => match &mut named.positional {
                Some(child) => child,
                vacant => {
                    *vacant = Some(Box::new(Self::fresh(rest, leaf)?));
                    return Some(());
                }
            },
            (Self::Named(named), Step::Name(name)) => {
                match named.children.binary_search_by(|(other, _)| order(other, name)) {
                    Ok(place) => &mut named.children.get_mut(place)?.1,
                    Err(place) => {
                        named.children.insert(place, (name.clone(), Self::fresh(rest, leaf)?));
                        return Some(());
                    }
                }
            }
            (Self::Each(Each(children)), Step::Each(selector)) => {
                match children.binary_search_by_key(selector, |(other, _)| *other) {
                    Ok(place) => &mut children.get_mut(place)?.1,
                    Err(place) => {
                        children.insert(place, (*selector, Self::fresh(rest, leaf)?));
                        return Some(());
                    }
                }
            }
            (Self::Leaf(_), _)
            | (Self::Each(_), Step::Name(_) | Step::Positional)
            | (Self::Named(_), Step::Each(_)) => {
                return None;
            }
        };
        child.put(rest, leaf)
    }

    /// A new branch of `steps` that ends in the leaf.
    fn fresh(steps: &[Step], leaf: Leaf) -> Option<Self> {
        let mut node = match steps.first() {
            None => return Some(Self::Leaf(leaf)),
            Some(Step::Each(_)) => Self::Each(Each::default()),
            Some(Step::Name(_) | Step::Positional) => Self::Named(Named::default()),
        };
        node.put(steps, leaf)?;
        Some(node)
    }
}

/// Two operators meet at one place.
pub(super) fn conflict(path: &str) -> Error {
    Error::new(Code::CONFLICTING_UPDATE_OPERATORS, "the update's operators conflict here").at(path)
}

/// The order in which MongoDB applies updates of sibling fields, and so appends new ones: by name, but numbers without
/// leading zeros by value.
pub(super) fn order(a: &str, b: &str) -> Ordering {
    let number = |name: &str| {
        name.starts_with(|first: char| first.is_ascii_digit()) && (name.len() == 1 || !name.starts_with('0'))
    };
    if number(a) && number(b) { a.len().cmp(&b.len()).then_with(|| a.cmp(b)) } else { a.cmp(b) }
}
