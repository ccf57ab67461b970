use std::fmt;

use super::Node;
use crate::{
    Error, Result,
    path::Path,
    raw::{Doc, OwnedValue},
};

/// A parsed filter.
#[derive(Clone, Debug)]
pub struct Filter {
    root: Node,
}

impl Filter {
    /// Parses a filter document.
    ///
    /// # Errors
    /// As MongoDB refuses it, with its code and the path of the fault; unsupported operators by name.
    pub fn parse(_filter: Doc<'_>) -> Result<Self> {
        Err(Error::unsupported("filter"))
    }

    /// Whether the document matches. Cost: one walk over the document's fields, no allocation.
    pub fn matches(&self, _doc: Doc<'_>) -> bool {
        false
    }

    /// `None` where the document does not match; else the array position that `$` stands for, where there is one.
    pub fn positional(&self, _doc: Doc<'_>) -> Option<Option<usize>> {
        None
    }

    /// The whole tree.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// The conditions that must all hold: the outermost conjunction, flattened.
    pub fn conjuncts(&self) -> &[Node] {
        std::slice::from_ref(&self.root)
    }

    /// Whether every document matches because nothing is asked.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The filter without the conjuncts at these places of [`Filter::conjuncts`].
    #[must_use]
    pub fn without(&self, _drop: &[usize]) -> Self {
        self.clone()
    }

    /// Whether every document that matches `self` surely matches `condition`: each conjunct of `condition` is implied by
    /// one conjunct of `self` within the same type bracket. A `false` is no proof of the contrary.
    pub fn implies(&self, _condition: &Self) -> bool {
        false
    }

    /// The fields and values that a document upserted by this filter starts from, in the filter's order.
    ///
    /// # Errors
    /// `NotSingleValueField` (54) where two conditions give one path, or a path and a part of it.
    pub fn equalities(&self) -> Result<Vec<(Path, OwnedValue)>> {
        Ok(Vec::new())
    }
}

/// Prints the filter as extended JSON would.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{}")
    }
}
