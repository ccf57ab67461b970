use slate_query::{filter::Filter, pipeline::RunningResults, raw::Doc};
use slate_store::View;

use super::{
    bucket_auto::BucketAutoRows,
    count::CountRows,
    densify::DensifyRows,
    documents::DocumentsRows,
    facet::{FacetRows, ReplayRows},
    graph_lookup::GraphLookupRows,
    group::GroupRows,
    lookup::LookupRows,
    measured::MeasuredRows,
    repeat::RepeatRows,
    running_window::RunningWindowRows,
    slice::SliceRows,
    sort::SortRows,
    sorted_group::SortedGroupRows,
    source::SourceRows,
    statistics,
    transform::{Transform, TransformRows},
    union_with::UnionRows,
    unwind::UnwindRows,
    window::WindowRows,
};
use crate::{
    Result,
    catalog::CollectionInfo,
    exec::{Resources, meter::Meter},
    interrupt::Interrupt,
    plan::{DocumentNode, GroupOrder, Plan},
};

/// The document tier: returns one document at a time, lent until the next move.
pub(crate) enum DocumentRows<V: View> {
    Source(Box<SourceRows<V>>),
    Match(Box<MatchRows<V>>),
    Sort(Box<SortRows<V>>),
    Slice(Box<SliceRows<V>>),
    Count(Box<CountRows<V>>),
    BucketAuto(Box<BucketAutoRows<V>>),
    Densify(Box<DensifyRows<V>>),
    Documents(DocumentsRows),
    Facet(Box<FacetRows<V>>),
    Repeat(Box<RepeatRows<V>>),
    Replay(Box<ReplayRows>),
    GraphLookup(Box<GraphLookupRows<V>>),
    Group(Box<GroupRows<V>>),
    SortedGroup(Box<SortedGroupRows<V>>),
    Lookup(Box<LookupRows<V>>),
    RunningWindow(Box<RunningWindowRows<V>>),
    Transform(Box<TransformRows<V>>),
    UnionWith(Box<UnionRows<V>>),
    Unwind(Box<UnwindRows<V>>),
    SetWindowFields(Box<WindowRows<V>>),
    Measured(Box<MeasuredRows<V>>),
}

impl<V: View> DocumentRows<V> {
    /// Opens the rows of the last of `nodes`, which are in the order of execution.
    pub(crate) fn open<'v>(
        plan: Plan,
        mut nodes: Vec<DocumentNode>,
        view: &V,
        collection: &CollectionInfo,
        resources: &Resources,
    ) -> Result<Self>
    where
        V: 'v,
    {
        let Some(node) = nodes.pop() else {
            return Ok(Self::Source(Box::new(SourceRows::open(plan, view, collection, resources)?)));
        };
        // A node is numbered before its input.
        let meters: Vec<Meter> = match resources.recorder {
            Some(_) => node.stages().map(|stage| resources.meter(stage)).collect(),
            None => Vec::new(),
        };
        let input = Self::open(plan, nodes, view, collection, resources)?;
        let documents = match node {
            DocumentNode::CollStats(stats) => statistics::of_collection(&stats, view, collection, resources)?,
            DocumentNode::Documents(documents) => documents.into_documents(),
            DocumentNode::IndexStats => statistics::of_indexes(collection, resources)?,
            node => {
                let meter = meters.last().map_or_else(Meter::default, Meter::same);
                return Ok(Self::of_node(node, input, view, resources, meter).measured(meters));
            }
        };
        Ok(Self::Documents(DocumentsRows::new(documents, resources.interrupt.clone())).measured(meters))
    }

    fn measured(self, meters: Vec<Meter>) -> Self {
        if meters.is_empty() { self } else { Self::Measured(Box::new(MeasuredRows::new(self, meters))) }
    }

    /// Opens `nodes` with these rows as their input, without execution statistics.
    pub(super) fn above(self, nodes: Vec<DocumentNode>, view: &V, resources: &Resources) -> Self {
        nodes.into_iter().fold(self, |input, node| Self::of_node(node, input, view, resources, Meter::default()))
    }

    fn of_node(node: DocumentNode, input: Self, view: &V, resources: &Resources, meter: Meter) -> Self {
        let transformed = |input, transform| {
            Self::Transform(Box::new(TransformRows::new(input, transform, resources.interrupt.clone())))
        };
        match node {
            DocumentNode::Match(filter) => {
                let can_fail = filter.can_fail();
                Self::Match(Box::new(MatchRows { input, filter, can_fail, interrupt: resources.interrupt.clone() }))
            }
            DocumentNode::Project { projection, .. } => transformed(input, Transform::Project(projection)),
            DocumentNode::Sort { sort, limit } => {
                Self::Sort(Box::new(SortRows::by_sort(input, sort, limit, resources, meter)))
            }
            DocumentNode::Slice(window) => Self::Slice(Box::new(SliceRows::new(input, window, resources))),
            DocumentNode::Sample(size) => Self::Sort(Box::new(SortRows::sample(input, size, resources, meter))),
            DocumentNode::Count(name) => Self::Count(Box::new(CountRows::of_rows(input, &name, resources))),
            DocumentNode::NameCount(name) => Self::Count(Box::new(CountRows::of_number(input, &name, resources))),
            DocumentNode::BucketAuto(stage) => {
                Self::BucketAuto(Box::new(BucketAutoRows::new(input, stage, resources, meter)))
            }
            DocumentNode::Densify(densify) => Self::Densify(Box::new(DensifyRows::new(input, densify, resources))),
            // `open` has opened these nodes: they can only be the first of a pipeline, and are refused within a `$facet`.
            DocumentNode::CollStats(_) | DocumentNode::Documents(_) | DocumentNode::IndexStats => input,
            DocumentNode::Facet { facets, kept, .. } => {
                Self::Facet(Box::new(FacetRows::new(input, facets, kept, view, resources, meter)))
            }
            DocumentNode::Repeat => Self::Repeat(Box::new(RepeatRows::new(input, resources.interrupt.clone()))),
            DocumentNode::Group { group, order: GroupOrder::ByKey, .. } => {
                Self::SortedGroup(Box::new(SortedGroupRows::new(input, group, resources)))
            }
            DocumentNode::Group { group, order, result } => {
                let ends_early = order == GroupOrder::ByEnd;
                Self::Group(Box::new(GroupRows::new(input, group, ends_early, result, resources, meter)))
            }
            DocumentNode::Lookup { lookup, optimization } => {
                Self::Lookup(Box::new(LookupRows::new(input, *lookup, optimization, view, resources, meter)))
            }
            DocumentNode::Redact(redact) => transformed(input, Transform::Redact(redact)),
            DocumentNode::GraphLookup { graph, optimization } => {
                Self::GraphLookup(Box::new(GraphLookupRows::new(input, *graph, optimization, view, resources, meter)))
            }
            DocumentNode::ReplaceRoot(replace) => transformed(input, Transform::ReplaceRoot(replace)),
            DocumentNode::SetWindowFields(windows) => match RunningResults::of(&windows) {
                Some(results) => {
                    Self::RunningWindow(Box::new(RunningWindowRows::new(input, *windows, results, resources, meter)))
                }
                None => Self::SetWindowFields(Box::new(WindowRows::new(input, *windows, resources, meter))),
            },
            DocumentNode::UnionWith { union, optimization } => {
                Self::UnionWith(Box::new(UnionRows::new(input, union, optimization, view, resources, meter)))
            }
            DocumentNode::Unwind(unwind) => Self::Unwind(Box::new(UnwindRows::new(input, unwind, resources))),
        }
    }

    /// Moves to the next document. Returns `false` after the last.
    pub(crate) fn advance(&mut self) -> Result<bool> {
        match self {
            Self::Source(rows) => rows.advance(),
            Self::Match(rows) => rows.advance(),
            Self::Sort(rows) => rows.advance(),
            Self::Slice(rows) => rows.advance(),
            Self::Count(rows) => rows.advance(),
            Self::BucketAuto(rows) => rows.advance(),
            Self::Densify(rows) => rows.advance(),
            Self::Documents(rows) => rows.advance(),
            Self::Facet(rows) => rows.advance(),
            Self::Repeat(rows) => rows.advance(),
            Self::Replay(rows) => rows.advance(),
            Self::GraphLookup(rows) => rows.advance(),
            Self::Group(rows) => rows.advance(),
            Self::SortedGroup(rows) => rows.advance(),
            Self::Lookup(rows) => rows.advance(),
            Self::Transform(rows) => rows.advance(),
            Self::RunningWindow(rows) => rows.advance(),
            Self::UnionWith(rows) => rows.advance(),
            Self::Unwind(rows) => rows.advance(),
            Self::SetWindowFields(rows) => rows.advance(),
            Self::Measured(rows) => rows.advance(),
        }
    }

    /// Moves to the next document and returns how many consecutive documents it stands for, which are all the same. 0 after
    /// the last.
    pub(super) fn advance_run(&mut self) -> Result<u64> {
        match self {
            Self::Source(rows) => rows.advance_run(),
            Self::Repeat(rows) => rows.advance_run(),
            Self::Lookup(rows) => rows.advance_run(),
            Self::Unwind(rows) => rows.advance_run(),
            Self::Match(rows) => rows.advance_run(),
            rows => rows.advance().map(u64::from),
        }
    }

    /// Returns the current document. `None` before the first move and after the last document.
    pub(crate) fn current(&self) -> Option<Doc<'_>> {
        match self {
            Self::Source(rows) => rows.current(),
            Self::Match(rows) => rows.input.current(),
            Self::Sort(rows) => rows.current(),
            Self::Slice(rows) => rows.current(),
            Self::Count(rows) => rows.current(),
            Self::BucketAuto(rows) => rows.current(),
            Self::Densify(rows) => rows.current(),
            Self::Documents(rows) => rows.current(),
            Self::Facet(rows) => rows.current(),
            Self::Repeat(rows) => rows.current(),
            Self::Replay(rows) => rows.current(),
            Self::GraphLookup(rows) => rows.current(),
            Self::Group(rows) => rows.current(),
            Self::SortedGroup(rows) => rows.current(),
            Self::Lookup(rows) => rows.current(),
            Self::Transform(rows) => rows.current(),
            Self::RunningWindow(rows) => rows.current(),
            Self::UnionWith(rows) => rows.current(),
            Self::Unwind(rows) => rows.current(),
            Self::SetWindowFields(rows) => rows.current(),
            Self::Measured(rows) => rows.current(),
        }
    }
}

/// Passes on the documents that match.
pub(crate) struct MatchRows<V: View> {
    input: DocumentRows<V>,
    filter: Filter,
    /// Whether evaluating the filter can fail.
    can_fail: bool,
    interrupt: Interrupt,
}

impl<V: View> MatchRows<V> {
    fn advance(&mut self) -> Result<bool> {
        Ok(self.advance_with(|input| input.advance().map(u64::from))? > 0)
    }

    fn advance_run(&mut self) -> Result<u64> {
        self.advance_with(DocumentRows::advance_run)
    }

    fn advance_with(&mut self, advance: impl Fn(&mut DocumentRows<V>) -> Result<u64>) -> Result<u64> {
        loop {
            self.interrupt.tick()?;
            let times = advance(&mut self.input)?;
            let Some(document) = self.input.current().filter(|_| times > 0) else { return Ok(0) };
            let matches = if self.can_fail { self.filter.evaluate(document)? } else { self.filter.matches(document) };
            if matches {
                return Ok(times);
            }
        }
    }
}
