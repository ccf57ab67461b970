use std::sync::Arc;

use bson::RawDocumentBuf;
use slate_query::{
    filter::Filter, interval::IntervalSet, path::Path, pattern::Direction, projection::Projection, sort::Sort,
};

use super::IndexBounds;
use crate::catalog::IndexInfo;

/// ID tier: yields the keys of records, in a known order.
#[derive(Clone, Debug)]
pub(crate) enum IdPlan {
    /// The records of these `_id`s, in their order; an `_id` that is not there yields nothing.
    Points(IntervalSet),
    /// The records that an index's entries name.
    Index(IndexScan),
    /// The records that any of the inputs names, or that all of them name, in the order of `_id`.
    Merge { how: Combine, inputs: Vec<IdPlan> },
}

/// How sets of records are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Combine {
    Union,
    Intersection,
}

/// A walk over an index's entries.
#[derive(Clone, Debug)]
pub(crate) struct IndexScan {
    pub(crate) index: Arc<IndexInfo>,
    pub(crate) bounds: IndexBounds,
    /// Fields that the bounds cannot narrow, and where their values must lie: entries elsewhere are passed over.
    pub(crate) checks: Vec<(usize, IntervalSet)>,
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
    Slice { input: Box<RawPlan>, window: Window },
}

/// Which of some rows are wanted, by their place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) skip: u64,
    pub(crate) limit: Option<u64>,
}

/// Projection tier: what the caller sees.
#[derive(Clone, Debug)]
pub(crate) enum Plan {
    Whole {
        input: RawPlan,
    },
    Project {
        input: RawPlan,
        projection: Projection,
        document: RawDocumentBuf,
        filter: Filter,
    },
    /// Documents made of an index's entries alone.
    Covered {
        scan: IndexScan,
        fields: Vec<CoveredField>,
        window: Window,
        document: RawDocumentBuf,
    },
    Count {
        input: RawPlan,
    },
    /// How many keys there are: no record is read.
    CountKeys {
        keys: CountedKeys,
        window: Window,
    },
    Distinct {
        input: RawPlan,
        path: Path,
        values: Values,
    },
    /// The different values of an index's field, the last one that its bounds leave open: from one value the walk goes
    /// straight to the next.
    DistinctKeys {
        scan: IndexScan,
        values: Values,
    },
}

/// Keys that are counted instead of read.
#[derive(Clone, Debug)]
pub(crate) enum CountedKeys {
    Records { bounds: Option<IntervalSet> },
    Entries(IndexScan),
}

/// A field of a document made of an index's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CoveredField {
    Id,
    /// The index's field of this number.
    Indexed(usize),
}

/// In which order different values are handed out, and which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Values {
    pub(crate) direction: Direction,
    pub(crate) window: Window,
}

impl Values {
    /// Whether a walk over the index gives them in their order.
    pub(crate) fn come_sorted(&self, scan: &IndexScan) -> bool {
        scan.index.pattern.fields().last().is_some_and(|(_, direction)| *direction == self.direction)
    }
}

impl Window {
    /// How many rows have to be found; `None` for all.
    pub(crate) fn reach(self) -> Option<u64> {
        self.limit.map(|limit| limit.saturating_add(self.skip))
    }

    /// Whether it leaves nothing out.
    pub(crate) fn is_whole(self) -> bool {
        self == Self::default()
    }

    /// How many of `rows` it leaves.
    pub(crate) fn count(self, rows: u64) -> u64 {
        rows.saturating_sub(self.skip).min(self.limit.unwrap_or(u64::MAX))
    }
}

impl IndexScan {
    /// The walk, moved out of a plan that is about to be replaced.
    pub(crate) fn take(&mut self) -> Self {
        let (bounds, checks) = (std::mem::take(&mut self.bounds), std::mem::take(&mut self.checks));
        Self { index: Arc::clone(&self.index), bounds, checks, direction: self.direction, limit: self.limit }
    }
}

impl Plan {
    /// The raw tier, where the plan has one.
    fn input_mut(&mut self) -> Option<&mut RawPlan> {
        match self {
            Self::Whole { input }
            | Self::Project { input, .. }
            | Self::Count { input }
            | Self::Distinct { input, .. } => Some(input),
            Self::Covered { .. } | Self::CountKeys { .. } | Self::DistinctKeys { .. } => None,
        }
    }

    /// Applies `rewrite` to each node of the raw tier, to a node's input before the node itself.
    pub(crate) fn rewrite(&mut self, mut rewrite: impl FnMut(&mut RawPlan)) {
        if let Some(input) = self.input_mut() {
            input.rewrite(&mut rewrite);
        }
    }
}

impl RawPlan {
    /// The records in the order of `_id`.
    pub(crate) fn everything() -> Self {
        Self::Scan { bounds: None, direction: Direction::Ascending }
    }

    /// The plan, moved out of a place that is about to be given another.
    pub(crate) fn take(&mut self) -> Self {
        std::mem::replace(self, Self::everything())
    }

    fn rewrite(&mut self, rewrite: &mut impl FnMut(&mut Self)) {
        match self {
            Self::Filter { input, .. } | Self::Sort { input, .. } | Self::Slice { input, .. } => input.rewrite(rewrite),
            Self::Scan { .. } | Self::Fetch { .. } => {}
        }
        rewrite(self);
    }

    /// The node that reads.
    pub(crate) fn leaf(&self) -> &Self {
        match self {
            Self::Filter { input, .. } | Self::Sort { input, .. } | Self::Slice { input, .. } => input.leaf(),
            Self::Scan { .. } | Self::Fetch { .. } => self,
        }
    }

    /// The leaf, where nothing but a slice stands above it, and what the slice leaves.
    pub(crate) fn sliced_leaf_mut(&mut self) -> Option<(&mut Self, Window)> {
        match self {
            Self::Slice { input, window } => input.is_leaf().then_some((&mut **input, *window)),
            Self::Scan { .. } | Self::Fetch { .. } => Some((self, Window::default())),
            Self::Filter { .. } | Self::Sort { .. } => None,
        }
    }

    fn is_leaf(&self) -> bool {
        matches!(self, Self::Scan { .. } | Self::Fetch { .. })
    }
}
