use crate::path::Path;

/// A part of a filter.
#[derive(Clone, Debug)]
pub struct Node(());

impl Node {
    /// The branches of an `$or`.
    pub fn branches(&self) -> Option<&[Node]> {
        None
    }
}

/// What a conjunct says of one path.
#[derive(Clone, Debug)]
pub struct Term {
    /// The path.
    pub path: Path,
    /// Whether the intervals say it all.
    pub exact: Exactness,
}

/// Whether an entry within a term's intervals proves its conjunct, so that the conjunct need not be asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exactness {
    /// It does not.
    Never,
    /// It does where the index's path holds no array in any document.
    WhereNotMultikey,
    /// It does.
    Always,
}
