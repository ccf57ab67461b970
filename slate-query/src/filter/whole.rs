use super::{Node, operators, parse, position};
use crate::{
    Result,
    path::Path,
    raw::{Doc, OwnedValue},
};

/// A parsed filter. It prints as extended JSON.
#[derive(Clone, Debug)]
pub struct Filter(Node);

impl Filter {
    /// Parses a filter document.
    ///
    /// # Errors
    /// MongoDB's error code and the path at fault for an invalid filter; `NotImplemented` (238) for operators that Slate
    /// does not support.
    pub fn parse(filter: Doc<'_>) -> Result<Self> {
        parse::document(filter, parse::Scope::whole_document()).map(Self)
    }

    /// The filter of the documents that have a value at `path`, be it null.
    pub fn exists(path: &Path) -> Self {
        Self(operators::exists(path))
    }

    /// Whether the document matches. Cost: a look at each field that is asked for, in a
    /// document without a table one walk over its fields; no allocation.
    #[inline]
    pub fn matches(&self, doc: Doc<'_>) -> bool {
        self.root().matches(doc)
    }

    /// `None` where the document does not match; else the array position that `$` stands for, where there is one: of
    /// several arrays gone through, that of the condition which comes last in MongoDB's own order of conditions.
    pub fn positional(&self, doc: Doc<'_>) -> Option<Option<usize>> {
        self.matches(doc).then(|| position::of(self.root(), doc))
    }

    /// The root of the tree.
    #[inline]
    pub fn root(&self) -> &Node {
        &self.0
    }

    /// The conditions that must all hold: the outermost conjunction, flattened.
    pub fn conjuncts(&self) -> &[Node] {
        self.root().conjuncts()
    }

    /// Whether every document matches because nothing is asked.
    pub fn is_empty(&self) -> bool {
        self.conjuncts().is_empty()
    }

    /// The filter without some of the conjuncts, by their places among [`Filter::conjuncts`]; `None` where that is all of them.
    #[must_use]
    pub fn without(&self, is_dropped: impl Fn(usize) -> bool) -> Option<Self> {
        let kept = || self.conjuncts().iter().enumerate().filter(|(place, _)| !is_dropped(*place));
        match kept().count() {
            0 => None,
            all if all == self.conjuncts().len() => Some(self.clone()),
            _ => Some(Self(Node::all(kept().map(|(_, node)| node.clone()).collect()))),
        }
    }

    /// Whether every document that matches `self` surely matches `condition`: each conjunct of `condition` is implied by
    /// one conjunct of `self` within the same type bracket. A `false` is no proof of the contrary.
    pub fn implies(&self, condition: &Self) -> bool {
        condition.conjuncts().iter().all(|conjunct| self.root().implies(conjunct))
    }

    /// The fields and values that a document upserted by this filter starts from, in the filter's order.
    ///
    /// # Errors
    /// `NotSingleValueField` (54) where two conditions give one path, or a path and a part of it.
    pub fn equalities(&self) -> Result<Vec<(Path, OwnedValue)>> {
        super::equalities::of(self.root())
    }
}
