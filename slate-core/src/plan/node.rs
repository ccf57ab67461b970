use std::sync::Arc;

use bson::RawDocumentBuf;
use slate_query::{filter::Filter, interval::IntervalSet, path::Path, pattern::Direction, projection::Projection, sort::Sort};

use super::IndexBounds;
use crate::catalog::IndexInfo;

/// ID tier: yields the keys of records, in a known order.
#[derive(Clone, Debug)]
pub(crate) enum IdPlan {
    /// The records of these `_id`s, in their order; an `_id` that is not there yields nothing.
    Points(IntervalSet),
    /// The records that an index's entries name.
    Index(IndexScan),
}

/// A walk over an index's entries.
#[derive(Clone, Debug)]
pub(crate) struct IndexScan {
    pub(crate) index: Arc<IndexInfo>,
    pub(crate) bounds: IndexBounds,
    pub(crate) direction: Direction,
    /// At most so many different records; set where nothing above rejects one.
    pub(crate) limit: Option<u64>,
}

/// Raw tier: yields records as borrowed raw BSON.
#[derive(Clone, Debug)]
pub(crate) enum RawPlan {
    /// The records in the order of `_id`, within bounds on it where there are any.
    Scan { bounds: Option<IntervalSet>, direction: Direction },
    /// The boundary between the tiers: the record of each id.
    Fetch { ids: IdPlan },
    /// Only the records that match.
    Filter { input: Box<RawPlan>, filter: Filter },
    /// In order. The input already comes ordered by the first `presorted` fields: only rows equal in those are held
    /// and sorted. With a limit, no more rows than it asks for are held.
    Sort { input: Box<RawPlan>, sort: Sort, presorted: usize, limit: Option<u64> },
    /// Without the first `skip`, and at most `limit` of the rest.
    Slice { input: Box<RawPlan>, skip: u64, limit: Option<u64> },
}

/// Projection tier: what the caller sees.
#[derive(Clone, Debug)]
pub(crate) enum Plan {
    Whole { input: RawPlan },
    Project { input: RawPlan, projection: Projection, document: RawDocumentBuf, filter: Filter },
    Count { input: RawPlan },
    Distinct { input: RawPlan, path: Path },
}

impl Plan {
    pub(crate) fn input(&self) -> &RawPlan {
        match self {
            Self::Whole { input }
            | Self::Project { input, .. }
            | Self::Count { input }
            | Self::Distinct { input, .. } => input,
        }
    }

    pub(crate) fn map_input(self, rewrite: impl FnOnce(RawPlan) -> RawPlan) -> Self {
        match self {
            Self::Whole { input } => Self::Whole { input: rewrite(input) },
            Self::Project { input, projection, document, filter } => {
                Self::Project { input: rewrite(input), projection, document, filter }
            }
            Self::Count { input } => Self::Count { input: rewrite(input) },
            Self::Distinct { input, path } => Self::Distinct { input: rewrite(input), path },
        }
    }
}

impl RawPlan {
    /// Applies `rewrite` to this node's input, where it has one, and then to the node itself.
    pub(crate) fn rewrite(self, rewrite: &mut impl FnMut(Self) -> Self) -> Self {
        let node = match self {
            Self::Filter { input, filter } => Self::Filter { input: Box::new(input.rewrite(rewrite)), filter },
            Self::Sort { input, sort, presorted, limit } => {
                Self::Sort { input: Box::new(input.rewrite(rewrite)), sort, presorted, limit }
            }
            Self::Slice { input, skip, limit } => {
                Self::Slice { input: Box::new(input.rewrite(rewrite)), skip, limit }
            }
            leaf @ (Self::Scan { .. } | Self::Fetch { .. }) => leaf,
        };
        rewrite(node)
    }

    /// The node that reads.
    pub(crate) fn leaf(&self) -> &Self {
        match self {
            Self::Filter { input, .. } | Self::Sort { input, .. } | Self::Slice { input, .. } => input.leaf(),
            Self::Scan { .. } | Self::Fetch { .. } => self,
        }
    }
}
