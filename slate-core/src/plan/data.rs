//! What the planner takes and what it makes, as plain data: a query, and the nodes of its plan in three tiers.

use std::sync::Arc;

use bson::{RawDocumentBuf, rawdoc};
use slate_query::{
    collation::Collation,
    filter::{Filter, SingleEquality},
    interval::IntervalSet,
    path::Path,
    pattern::Direction,
    pipeline::Kept,
    projection::Projection,
    raw::Doc,
    sort::Sort,
};

use super::{Checks, DocumentNode, FiredRules, IndexBounds, KeyLimits, Nodes, Stage, view::ForeignView};
use crate::{
    Hint, Result,
    catalog::{IndexInfo, ResolvedView},
    metrics::OperationKind,
};

/// A parsed query.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    /// The kind of operation under which metrics count the query.
    pub(crate) kind: OperationKind,
    pub(crate) filter: Filter,
    pub(crate) sort: Option<Sort>,
    pub(crate) skip: u64,
    pub(crate) limit: Option<u64>,
    pub(crate) output: Output,
    pub(crate) hint: Option<Hint>,
    /// The part of the hinted index that is read.
    pub(crate) limits: Option<Arc<KeyLimits>>,
    pub(crate) force: Force,
    pub(crate) ties: Ties,
    /// The stages of a pipeline that follow the output.
    pub(crate) pipeline: Nodes,
    /// The view whose pipeline the query begins with.
    pub(crate) view: Option<Arc<ResolvedView>>,
    /// The views that the stages of the pipeline read.
    pub(crate) others: Arc<[ForeignView]>,
}

/// The output of a query.
#[derive(Clone, Debug)]
pub(crate) enum Output {
    /// Whole documents.
    Whole,
    /// The key of each document in the index that the plan reads.
    Key,
    /// Documents of which only these top-level fields are read, by the pipeline above. The others may be left out.
    Fields(Box<[Path]>),
    /// Documents with the projection applied.
    Project { projection: Projection, document: RawDocumentBuf },
    /// The number of documents.
    Count,
    /// The distinct values at this path, in order.
    Distinct { path: Path, values: Values },
}

/// Which candidate is chosen. Tests force each of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Force {
    /// The cheapest.
    #[default]
    No,
    /// The candidate at this position of the list. A position beyond the end of the list is an error.
    #[cfg_attr(not(feature = "unstable-testing"), expect(dead_code, reason = "only tests force a candidate"))]
    Candidate(usize),
}

/// The order of rows that compare equal in the sort.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ties {
    /// Any order, which may depend on the plan.
    #[default]
    Any,
    /// The order of `_id`. The target of a write to one document must not depend on the plan.
    ById,
}

impl Hint {
    /// Returns the hint that requests a scan of the records in this direction of `_id`.
    pub(crate) fn natural(direction: Direction) -> Self {
        match direction {
            Direction::Ascending => Self::Forward,
            Direction::Descending => Self::Backward,
        }
    }
}

impl Query {
    /// Returns whether conditions, expressions or keys of sorts are evaluated on documents.
    pub(crate) fn evaluates(&self) -> bool {
        let is_whole = matches!(self.output, Output::Whole | Output::Count | Output::Key);
        !(is_whole && self.filter.is_empty() && self.sort.is_none() && self.pipeline.nodes.is_empty())
    }

    /// Returns the names of the rules that rewrote its pipeline, and of those that changed its plan.
    pub(crate) fn rules(&self, fired: FiredRules) -> impl Iterator<Item = &'static str> {
        self.pipeline.rules.iter().copied().chain(fired.names())
    }

    /// Returns the query for all matching documents, whole and in any order.
    pub(crate) fn of(filter: Filter) -> Self {
        Self {
            kind: OperationKind::Find,
            filter,
            sort: None,
            skip: 0,
            limit: None,
            output: Output::Whole,
            hint: None,
            limits: None,
            force: Force::No,
            ties: Ties::Any,
            pipeline: Nodes::default(),
            view: None,
            others: Arc::default(),
        }
    }

    /// Returns the query without conditions, window and pipeline, in the order of `sort`.
    pub(crate) fn sorted_without_pipeline(&self, sort: Sort) -> Self {
        Self { kind: self.kind, sort: Some(sort), output: self.output.clone(), ..Self::of(Filter::all()) }
    }

    /// Returns the equality if it is the whole filter, and the query returns whole documents and requires neither an access path
    /// nor an order.
    pub(crate) fn single_equality(&self) -> Option<SingleEquality<'_>> {
        let is_plain = self.order().is_none()
            && self.skip == 0
            && self.limit != Some(0)
            && self.hint.is_none()
            && self.force == Force::No
            && self.pipeline.nodes.is_empty()
            && matches!(self.output, Output::Whole);
        if is_plain { self.filter.single_equality() } else { None }
    }

    /// Returns the skip and the limit.
    pub(crate) fn window(&self) -> Window {
        Window { skip: self.skip, limit: self.limit }
    }

    /// Returns the sort, if it has fields.
    pub(crate) fn order(&self) -> Option<&Sort> {
        self.sort.as_ref().filter(|sort| !sort.fields().is_empty())
    }
}

/// Returns the order of `_id` as a sort.
pub(crate) fn sort_by_id(direction: Direction) -> Result<Sort> {
    Ok(Sort::parse(Doc::from(&rawdoc! { "_id": direction.sign() }))?)
}

/// The ID tier: yields the keys of records, in a known order.
#[derive(Clone, Debug)]
pub(crate) enum IdPlan {
    /// The records of these `_id`s, in their order; an `_id` without a record yields nothing.
    Points(IntervalSet),
    /// The records that index entries refer to.
    Index(IndexScan),
    /// The records that any, or all, of the inputs return, in the order of `_id`.
    Merge { how: Combine, inputs: Vec<IdPlan> },
}

/// How a merge combines its inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Combine {
    Union,
    Intersection,
}

/// A walk over the entries of an index.
#[derive(Clone, Debug)]
pub(crate) struct IndexScan {
    pub(crate) index: Arc<IndexInfo>,
    pub(crate) bounds: IndexBounds,
    /// The conditions on an entry's values: other entries are skipped.
    pub(crate) checks: Checks,
    pub(crate) direction: Direction,
    /// Maximum number of records to return. Set only if no node above rejects a record.
    pub(crate) limit: Option<u64>,
    /// If not 0: among entries that are equal in this many leading fields, only the first in ascending order is returned.
    /// Combined with `checks` only for an ascending walk.
    pub(crate) firsts: usize,
}

/// The raw tier: yields records as borrowed raw BSON.
#[derive(Clone, Debug)]
pub(crate) enum RawPlan {
    /// No rows, independent of the data.
    Eof { reason: &'static str },
    /// The records in the order of `_id`, within bounds on it.
    Scan { bounds: Option<IntervalSet>, direction: Direction },
    /// The record of each id.
    Fetch { ids: IdPlan },
    /// The records that match.
    Filter { input: Box<RawPlan>, filter: Filter },
    /// The records in order. If the input is ordered by the first `presorted` fields, only rows that are equal in them
    /// are held and sorted at a time. Holds at most `limit` rows, and returns records with the fields `kept`.
    Sort { input: Box<RawPlan>, sort: Sort, presorted: usize, limit: Option<u64>, kept: Kept },
    /// The records without the first `skip`, at most `limit` of them.
    Slice { input: Box<RawPlan>, window: Window },
}

/// Skip and limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) skip: u64,
    pub(crate) limit: Option<u64>,
}

/// The output tier.
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
    /// Documents built from the entries of an index alone.
    Covered {
        scan: IndexScan,
        fields: Vec<CoveredField>,
        window: Window,
        document: RawDocumentBuf,
    },
    Count {
        input: RawPlan,
    },
    /// The number of keys, without reading records.
    CountKeys {
        keys: CountedKeys,
        window: Window,
    },
    Distinct {
        input: RawPlan,
        path: Path,
        values: Values,
    },
    /// The distinct values of an index's last field, found by seeking from one value to the next.
    DistinctKeys {
        scan: IndexScan,
        values: Values,
    },
    /// The distinct values of an index's field, taken from every entry.
    DistinctEntries {
        scan: IndexScan,
        /// The position of the field in the index.
        field: usize,
        path: Path,
        values: Values,
    },
    /// The document tier: nodes executed on the rows of another plan, in order.
    Pipeline {
        input: Box<Plan>,
        nodes: Vec<DocumentNode>,
    },
}

/// The keys to count.
#[derive(Clone, Debug)]
pub(crate) enum CountedKeys {
    Records {
        bounds: Option<IntervalSet>,
    },
    /// Entries of which each record has at most one.
    Entries(IndexScan),
    /// The records that entries refer to, each once.
    Ids(IdPlan),
}

/// A field of a document built from an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CoveredField {
    Id,
    /// The field of the index with this number.
    Indexed(usize),
}

/// The order of distinct values, and the window of them to return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Values {
    pub(crate) direction: Direction,
    pub(crate) window: Window,
    /// How strings are compared, if not by their bytes.
    pub(crate) collation: Option<Collation>,
}

impl Values {
    /// Returns whether a walk over the index returns the values in this order.
    pub(crate) fn are_sorted_by(&self, scan: &IndexScan) -> bool {
        scan.index.pattern.fields().last().is_some_and(|(_, direction)| *direction == self.direction)
    }
}

impl Window {
    /// Returns the stages as they are drawn, from the root on.
    pub(crate) fn stages(self) -> impl Iterator<Item = Stage> + use<> {
        let limit = self.limit.map(|_| Stage::Limit);
        limit.into_iter().chain((self.skip > 0).then_some(Stage::Skip))
    }

    /// Returns the window that has the effect of `next` on the rows of this window.
    pub(crate) fn then(self, next: Self) -> Self {
        let left = self.limit.map(|limit| limit.saturating_sub(next.skip));
        let limit = match (left, next.limit) {
            (Some(left), Some(next)) => Some(left.min(next)),
            (left, next) => left.or(next),
        };
        Self { skip: self.skip.saturating_add(next.skip), limit }
    }

    /// Returns the number of rows to find, including those to skip; `None` for all.
    pub(crate) fn reach(self) -> Option<u64> {
        self.limit.map(|limit| limit.saturating_add(self.skip))
    }

    pub(crate) fn is_all(self) -> bool {
        self == Self::default()
    }

    /// Returns how many of `rows` are within the window.
    pub(crate) fn count(self, rows: u64) -> u64 {
        rows.saturating_sub(self.skip).min(self.limit.unwrap_or(u64::MAX))
    }
}

impl IndexScan {
    pub(crate) fn stage(&self) -> Stage {
        Stage::IxScan
    }

    /// Returns whether a record has at most one entry within the bounds.
    pub(crate) fn finds_once(&self) -> bool {
        self.bounds.find_once(&self.index)
    }
}

impl Plan {
    /// Returns the plan of a query without rows.
    pub(crate) fn eof(reason: &'static str) -> Self {
        Self::Whole { input: RawPlan::Eof { reason } }
    }

    /// Returns the stages of the output tier as they are drawn, from the root on. The nodes of the document tier
    /// measure themselves.
    pub(crate) fn stages(&self) -> impl Iterator<Item = Stage> + use<> {
        let (window, stage) = match self {
            Self::Whole { .. } | Self::Pipeline { .. } => (Window::default(), None),
            Self::Project { .. } => (Window::default(), Some(Stage::Projection)),
            Self::Covered { window, .. } => (*window, Some(Stage::ProjectionCovered)),
            Self::Count { .. } => (Window::default(), Some(Stage::Count)),
            Self::CountKeys { window, .. } => (*window, Some(Stage::CountScan)),
            Self::Distinct { values, .. } => (values.window, Some(Stage::Distinct)),
            Self::DistinctKeys { values, .. } | Self::DistinctEntries { values, .. } => {
                (values.window, Some(Stage::DistinctScan))
            }
        };
        window.stages().chain(stage)
    }
}

impl CountedKeys {
    pub(crate) fn stage(&self) -> Stage {
        match self {
            Self::Records { .. } => Stage::CollScan,
            Self::Entries(scan) => scan.stage(),
            Self::Ids(ids) => ids.stage(),
        }
    }
}

impl IdPlan {
    pub(crate) fn stage(&self) -> Stage {
        match self {
            Self::Points(_) => Stage::IdHack,
            Self::Index(scan) => scan.stage(),
            Self::Merge { how: Combine::Union, .. } => Stage::Or,
            Self::Merge { how: Combine::Intersection, .. } => Stage::AndSorted,
        }
    }
}

impl RawPlan {
    /// Returns the stages of the node as they are drawn: a slice is up to two.
    pub(crate) fn stages(&self) -> impl Iterator<Item = Stage> + use<> {
        let (window, stage) = match self {
            Self::Eof { .. } => (Window::default(), Some(Stage::Eof)),
            Self::Scan { .. } => (Window::default(), Some(Stage::CollScan)),
            Self::Fetch { .. } => (Window::default(), Some(Stage::Fetch)),
            Self::Filter { .. } => (Window::default(), Some(Stage::Filter)),
            Self::Sort { .. } => (Window::default(), Some(Stage::Sort)),
            Self::Slice { window, .. } => (*window, None),
        };
        window.stages().chain(stage)
    }

    /// Returns the node without an input.
    pub(crate) fn leaf(&self) -> &Self {
        match self {
            Self::Filter { input, .. } | Self::Sort { input, .. } | Self::Slice { input, .. } => input.leaf(),
            Self::Eof { .. } | Self::Scan { .. } | Self::Fetch { .. } => self,
        }
    }

    /// Returns whether a node of the raw tier sorts its rows.
    pub(crate) fn sorts(&self) -> bool {
        match self {
            Self::Sort { .. } => true,
            Self::Filter { input, .. } | Self::Slice { input, .. } => input.sorts(),
            Self::Eof { .. } | Self::Scan { .. } | Self::Fetch { .. } => false,
        }
    }
}
