use slate_query::pipeline::RunningResults;
use slate_store::View;

use super::{
    bucket_auto::BucketAutoRows,
    count::CountRows,
    densify::DensifyRows,
    documents::DocumentsRows,
    facet::FacetRows,
    graph_lookup::GraphLookupRows,
    group::GroupRows,
    lookup::LookupRows,
    repeat::RepeatRows,
    running_window::RunningWindowRows,
    sorted_group::SortedGroupRows,
    statistics,
    transform::{Transform, TransformRows},
    union_with::UnionRows,
    unwind::UnwindRows,
    window::WindowRows,
};
use crate::{
    Result,
    catalog::CollectionInfo,
    exec::{
        Meter, Resources,
        measured::MeasuredRows,
        open::open_shared,
        rows::{BoxedRows, FilterRows, SliceRows},
        sort::SortRows,
    },
    plan::{DocumentNode, GroupOrder, Plan},
};

/// Opens the rows of the last of `nodes`, which are in the order of execution, over those of a plan.
pub(in crate::exec) fn open<'v, V: View + 'v>(
    plan: Plan,
    mut nodes: Vec<DocumentNode>,
    view: &V,
    collection: &CollectionInfo,
    resources: &Resources,
) -> Result<BoxedRows<'v>> {
    let Some(node) = nodes.pop() else {
        return measured(resources, resources.meters(&plan), |_| open_shared(plan, view, collection, resources));
    };
    // The meters of a node are numbered before those of its input.
    measured(resources, resources.meters(&node), |meter| {
        let input = open(plan, nodes, view, collection, resources)?;
        let documents = match node {
            DocumentNode::CollStats(stats) => statistics::of_collection(&stats, view, collection, resources)?,
            DocumentNode::Documents(documents) => documents.into_documents(),
            DocumentNode::IndexStats => statistics::of_indexes(collection, resources)?,
            node => return Ok(open_node(node, input, view, resources, meter.same())),
        };
        Ok(Box::new(DocumentsRows::new(documents, resources.interrupt.clone())))
    })
}

/// Opens rows, and measures them if explain requests it.
fn measured<'v>(
    resources: &Resources,
    meters: impl Iterator<Item = Meter>,
    open: impl FnOnce(&Meter) -> Result<BoxedRows<'v>>,
) -> Result<BoxedRows<'v>> {
    if !resources.measures_nodes() {
        return open(&meters.last().unwrap_or_default());
    }
    Ok(Box::new(MeasuredRows::open(meters.collect(), open)?))
}

/// Opens `nodes` over `input`, without execution statistics.
pub(super) fn above<'v, V: View + 'v>(
    input: BoxedRows<'v>,
    nodes: Vec<DocumentNode>,
    view: &V,
    resources: &Resources,
) -> BoxedRows<'v> {
    nodes.into_iter().fold(input, |input, node| open_node(node, input, view, resources, Meter::default()))
}

fn open_node<'v, V: View + 'v>(
    node: DocumentNode,
    input: BoxedRows<'v>,
    view: &V,
    resources: &Resources,
    meter: Meter,
) -> BoxedRows<'v> {
    let interrupt = || resources.interrupt.clone();
    let transformed = |input, transform| Box::new(TransformRows::new(input, transform, interrupt()));
    match node {
        DocumentNode::Match(filter) => Box::new(FilterRows::new(input, filter)),
        DocumentNode::Project { projection, .. } => transformed(input, Transform::Project(projection)),
        DocumentNode::Sort { sort, limit } => Box::new(SortRows::of_documents(input, sort, limit, resources, meter)),
        DocumentNode::Slice(window) => Box::new(SliceRows::new(input, window)),
        DocumentNode::Sample(size) => Box::new(SortRows::sample(input, size, resources, meter)),
        DocumentNode::Count(name) => Box::new(CountRows::of_rows(input, &name, resources)),
        DocumentNode::NameCount(name) => Box::new(CountRows::of_number(input, &name, resources)),
        DocumentNode::BucketAuto(stage) => Box::new(BucketAutoRows::new(input, stage, resources, meter)),
        DocumentNode::Densify(densify) => Box::new(DensifyRows::new(input, densify, resources)),
        // `open` has opened these nodes: they can only be the first of a pipeline, and are refused within a `$facet`.
        DocumentNode::CollStats(_) | DocumentNode::Documents(_) | DocumentNode::IndexStats => input,
        DocumentNode::Facet { facets, kept, .. } => {
            Box::new(FacetRows::new(input, facets, kept, view, resources, meter))
        }
        DocumentNode::Repeat => Box::new(RepeatRows::new(input, interrupt())),
        DocumentNode::Group { group, order: GroupOrder::ByKey, .. } => {
            Box::new(SortedGroupRows::new(input, group, resources))
        }
        DocumentNode::Group { group, order, result } => {
            let ends_early = order == GroupOrder::ByEnd;
            Box::new(GroupRows::new(input, group, ends_early, result, resources, meter))
        }
        DocumentNode::Lookup { lookup, optimization } => {
            Box::new(LookupRows::new(input, *lookup, optimization, view, resources, &meter))
        }
        DocumentNode::Redact(redact) => transformed(input, Transform::Redact(redact)),
        DocumentNode::GraphLookup { graph, optimization } => {
            Box::new(GraphLookupRows::new(input, *graph, optimization, view, resources, &meter))
        }
        DocumentNode::ReplaceRoot(replace) => transformed(input, Transform::ReplaceRoot(replace)),
        DocumentNode::SetWindowFields(windows) => match RunningResults::of(&windows) {
            Some(results) => Box::new(RunningWindowRows::new(input, *windows, results, resources, meter)),
            None => Box::new(WindowRows::new(input, *windows, resources, meter)),
        },
        DocumentNode::UnionWith { union, optimization } => {
            Box::new(UnionRows::new(input, union, optimization, view, resources, &meter))
        }
        DocumentNode::Unwind(unwind) => Box::new(UnwindRows::new(input, unwind, resources)),
    }
}
