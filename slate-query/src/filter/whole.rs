use super::{
    Node, Ties,
    clause::{BindingsSource, ClauseScope},
    operators, parse, position,
};
use crate::{
    Result,
    collation::Collation,
    expression::Bindings,
    path::Path,
    raw::{Doc, OwnedValue, Value},
    regular_expression::failure,
};

/// A parsed filter. It prints as extended JSON.
#[derive(Clone, Debug)]
pub struct Filter(Node);

impl Filter {
    /// Parses a filter document.
    ///
    /// # Errors
    /// MongoDB's error code and the path at fault for an invalid filter; `NotImplemented` (238) for operators that Slate
    /// does not support; 224 for `$expr`.
    pub fn parse(filter: Doc<'_>) -> Result<Self> {
        Self::parse_lazily(filter, None, None)
    }

    /// Parses a filter document that may contain `$expr`, with these variables.
    ///
    /// # Errors
    /// As [`Filter::parse`].
    pub fn parse_with(filter: Doc<'_>, bindings: &Bindings) -> Result<Self> {
        Self::parse_lazily(filter, bindings.collation(), Some(bindings))
    }

    /// Parses a filter document, whose conditions compare strings by a collation, if there is one. The variables are computed only if it
    /// contains `$expr`, which is not allowed without a source of them.
    ///
    /// # Errors
    /// As [`Filter::parse`]; the errors of the variables.
    pub fn parse_lazily(
        filter: Doc<'_>,
        collation: Option<&Collation>,
        bindings: Option<&dyn BindingsSource>,
    ) -> Result<Self> {
        parse::document(filter, ClauseScope::whole_document(collation, bindings)).map(Self)
    }

    /// Parses a filter document that is a part of an update, a projection or an index, whose conditions compare strings
    /// by a collation, if there is one.
    ///
    /// # Errors
    /// As [`Filter::parse`]; 224 for `$jsonSchema` too.
    pub fn parse_part(filter: Doc<'_>, collation: Option<&Collation>) -> Result<Self> {
        parse::document(filter, ClauseScope::part(collation)).map(Self)
    }

    /// Returns whether the filter contains `$expr`.
    pub fn has_expression(&self) -> bool {
        self.root().has_expression()
    }

    /// Returns whether the filter contains `$expr`, compares strings by a collation, or has a regular expression that
    /// needs backtracking, so that [`evaluate`](Self::evaluate) can fail.
    pub fn can_fail(&self) -> bool {
        self.root().can_fail()
    }

    /// Like [`matches`](Self::matches), but fails if an expression fails.
    ///
    /// # Errors
    /// The errors of the expressions; for a regular expression, 51156 if the match takes too many steps, and 50 if it would take longer
    /// than the deadline.
    pub fn evaluate(&self, doc: Doc<'_>) -> Result<bool> {
        failure::watch(|| self.root().evaluate(doc))?
    }

    /// Returns the filter without conditions, which every document matches.
    pub fn all() -> Self {
        Self(Node::all(Vec::new()))
    }

    /// Returns the filter with these conjuncts.
    pub fn of_conjuncts(conjuncts: Vec<Node>) -> Self {
        Self(Node::all(conjuncts))
    }

    /// Returns the filter `{path: {$exists: true}}`.
    pub fn exists(path: &Path) -> Self {
        Self(operators::exists(path))
    }

    /// Returns whether the document matches. Looks up each field of the filter, or makes one pass over the fields of a document without
    /// a field table. Does not allocate, unless the filter [can fail](Self::can_fail): use [`evaluate`](Self::evaluate) for such a
    /// filter. An expression that fails counts as false.
    #[inline]
    pub fn matches(&self, doc: Doc<'_>) -> bool {
        self.root().matches(doc)
    }

    /// Returns `None` if the document does not match; otherwise the array position that `$` represents, if any. If
    /// several arrays were traversed, the condition that is last in MongoDB's order determines it; `ties` chooses among
    /// equal ones, such as the values of `$all`.
    pub fn positional(&self, doc: Doc<'_>, ties: Ties) -> Option<Option<usize>> {
        self.matches(doc).then(|| position::of(self.root(), doc, ties))
    }

    /// Returns the root of the tree.
    #[inline]
    pub fn root(&self) -> &Node {
        &self.0
    }

    /// Returns the conditions that must all hold: the conjuncts of the root.
    pub fn conjuncts(&self) -> &[Node] {
        self.root().conjuncts()
    }

    /// Returns whether the filter has no conditions, so that every document matches.
    pub fn is_empty(&self) -> bool {
        self.conjuncts().is_empty()
    }

    /// Returns the conjunction of both filters.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self(Node::all(vec![self.root().clone(), other.root().clone()]))
    }

    /// Returns whether `holds` is true for every path of the filter: the values at these paths determine whether a
    /// document matches.
    pub fn all_paths(&self, mut holds: impl FnMut(&Path) -> bool) -> bool {
        self.root().all_paths(&mut holds)
    }

    /// Returns the conjuncts on the path `from` as a filter on `to`, and the filter without them. `None` for a filter
    /// without conjuncts.
    ///
    /// Only conjuncts are moved that are the same for values with the same index key, and for null and a missing field.
    pub fn split_at(&self, from: &Path, to: &Path) -> (Option<Self>, Option<Self>) {
        let mut moved = Vec::new();
        let mut is_moved = vec![false; self.conjuncts().len()];
        for (node, is_moved) in self.conjuncts().iter().zip(&mut is_moved) {
            if let Some(node) = node.moved(from, to) {
                moved.push(node);
                *is_moved = true;
            }
        }
        let rest = self.without(|place| is_moved.get(place).is_some_and(|moved| *moved));
        ((!moved.is_empty()).then(|| Self(Node::all(moved))), rest.filter(|rest| !rest.is_empty()))
    }

    /// Returns the filter without the conjuncts at the positions for which `is_dropped` is true; `None` if none is
    /// left.
    #[must_use]
    pub fn without(&self, is_dropped: impl Fn(usize) -> bool) -> Option<Self> {
        let remaining = || self.conjuncts().iter().enumerate().filter(|(place, _)| !is_dropped(*place));
        match remaining().count() {
            0 => None,
            all if all == self.conjuncts().len() => Some(self.clone()),
            _ => Some(Self(Node::all(remaining().map(|(_, node)| node.clone()).collect()))),
        }
    }

    /// Returns `true` only if every document that matches `self` also matches `condition`. `false` means that this is not
    /// known: only conjuncts on the same path within the same type bracket are compared.
    pub fn implies(&self, condition: &Self) -> bool {
        condition.conjuncts().iter().all(|conjunct| self.root().implies(conjunct))
    }

    /// Returns the fields and values of the document that an upsert with this filter starts from, in the filter's
    /// order. Leaves out the paths for which `is_wanted` returns false.
    ///
    /// # Errors
    /// `NotSingleValueField` (54) if two different values are on the same path, or the path of one begins with the path of
    /// another; the errors of `is_wanted`.
    pub fn equalities(&self, is_wanted: impl Fn(&Path) -> Result<bool>) -> Result<Vec<(Path, OwnedValue)>> {
        super::equalities::of(self.root(), is_wanted)
    }

    /// Returns the value that every matching document has at this path, or among the elements of an array there. `None`
    /// if no condition requires a single value; with a collation, several strings can be equal to the operand.
    pub fn equality_at(&self, path: &str) -> Option<Value<'_>> {
        super::equalities::value_at(self.root(), path)
    }
}
