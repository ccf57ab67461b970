//! The input of the planner, as plain data: a query.

use std::sync::Arc;

use bson::{RawDocumentBuf, rawdoc};
use slate_query::{
    filter::Filter, path::Path, pattern::Direction, pipeline::Stage, projection::Projection, raw::Doc, sort::Sort,
};

use super::{FiredRules, KeyLimits, Nodes, Values, Window};
use crate::{Hint, Result, catalog::ResolvedView, metrics::OperationKind};

/// A parsed query.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    /// The kind of operation under which metrics count the query.
    pub(crate) kind: OperationKind,
    pub(crate) filter: Filter,
    /// The order of the rows, by at least one field.
    pub(crate) sort: Option<Sort>,
    pub(crate) window: Window,
    pub(crate) output: Output,
    pub(crate) hint: Option<Hint>,
    /// The part of the hinted index that is read; `None` for all of it.
    pub(crate) limits: Option<Arc<KeyLimits>>,
    pub(crate) force: Force,
    pub(crate) ties: Ties,
    /// The stages of a pipeline that follow the output.
    pub(crate) pipeline: Nodes,
    /// The view whose pipeline the query begins with; `None` for a query of a collection.
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
    /// Documents of which the pipeline reads only these top-level fields. Other fields may be missing.
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
            window: Window::default(),
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
}

/// A view that stages read, with its parsed pipeline.
#[derive(Clone, Debug)]
pub(crate) struct ForeignView {
    pub(crate) definition: Arc<ResolvedView>,
    pub(crate) stages: Vec<Stage>,
}

/// Returns the order of `_id` as a sort.
pub(crate) fn sort_by_id(direction: Direction) -> Result<Sort> {
    Ok(Sort::parse(Doc::from(&rawdoc! { "_id": direction.sign() }))?)
}
