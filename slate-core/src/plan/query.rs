use bson::RawDocumentBuf;
use slate_query::{filter::Filter, path::Path, pattern::Direction, projection::Projection, sort::Sort};

use super::{Values, Window};

/// A parsed question.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    pub(crate) filter: Filter,
    pub(crate) sort: Option<Sort>,
    pub(crate) skip: u64,
    pub(crate) limit: Option<u64>,
    pub(crate) output: Output,
    pub(crate) hint: Option<Hint>,
    pub(crate) force: Force,
    pub(crate) ties: Ties,
    /// The bytes of memory that rows may be held in, where it is not the database's own limit.
    pub(crate) memory_limit: Option<usize>,
}

/// What becomes of the records that were found.
#[derive(Clone, Debug)]
pub(crate) enum Output {
    /// They are handed out whole.
    Whole,
    /// They are handed out as the projection leaves them.
    Project { projection: Projection, document: RawDocumentBuf },
    /// They are counted.
    Count,
    /// The different values at this path are handed out, in order.
    Distinct { path: Path, values: Values },
}

/// Which access path the caller wants.
#[derive(Clone, Debug)]
pub(crate) enum Hint {
    /// The records in the order of `_id`, or against it.
    Natural(Direction),
    /// The index of that name.
    Name(String),
    /// The index over exactly these keys.
    Keys(RawDocumentBuf),
}

/// Which of the usable access paths is taken: tests take each in turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Force {
    /// The one that selection finds best.
    #[default]
    No,
    /// The one at this place of the list of candidates; beyond its end, an error.
    Candidate(usize),
}

/// What decides among rows that the sort leaves equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ties {
    /// Whatever the plan yields first.
    #[default]
    Any,
    /// The order of `_id`: what a write to one target takes must not depend on the plan.
    ById,
}

impl Query {
    /// Everything, as it is.
    pub(crate) fn of(filter: Filter) -> Self {
        Self {
            filter,
            sort: None,
            skip: 0,
            limit: None,
            output: Output::Whole,
            hint: None,
            force: Force::No,
            ties: Ties::Any,
            memory_limit: None,
        }
    }

    /// Which rows are wanted, by their place.
    pub(crate) fn window(&self) -> Window {
        Window { skip: self.skip, limit: self.limit }
    }

    /// The sort, where it orders anything.
    pub(crate) fn order(&self) -> Option<&Sort> {
        self.sort.as_ref().filter(|sort| !sort.fields().is_empty())
    }
}
