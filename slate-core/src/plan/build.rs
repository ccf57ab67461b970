use slate_store::View;

use super::{
    Access, CoveredField, DocumentNode, Drawing, GroupOrder, IndexScan, Plan, Query, Ties, Window,
    candidates::candidates,
    cost::{Probe, ViewProbe},
    keys_only::drawn,
    pipeline,
    rules::FiredRules,
    select_access::select,
};
use crate::{Result, catalog::CollectionInfo, metrics::trace};

/// What a plan is chosen by.
pub(crate) struct Context<'a> {
    pub(crate) collection: &'a CollectionInfo,
    pub(crate) query: &'a Query,
    pub(crate) probe: &'a dyn Probe,
    /// The access path, if it is known without a choice.
    pub(crate) access: Option<&'a Access>,
}

/// A plan, and the rules that changed it.
pub(crate) struct Planned {
    pub(crate) plan: Plan,
    pub(crate) rules: FiredRules,
}

/// Plans a query. Keys are counted in `view`.
///
/// # Errors
/// Fails on a hint that names no index or an index without all matching documents, and on a forced candidate that does
/// not exist.
pub(crate) fn build<V: View>(query: &Query, view: &V, collection: &CollectionInfo) -> Result<Planned> {
    let planned = build_pipeline(&Context { collection, query, probe: &ViewProbe::new(view), access: None })?;
    trace::planned(query.kind, &collection.name, || {
        let rules = query.rules(planned.rules).collect();
        Drawing::new(&planned.plan, rules, &collection.name).draw()
    });
    Ok(planned)
}

fn build_pipeline(context: &Context<'_>) -> Result<Planned> {
    let mut nodes = context.query.pipeline.nodes.clone();
    let ends_early = |nodes: &mut Vec<DocumentNode>| {
        if let Some(DocumentNode::Group { order, .. }) = nodes.first_mut() {
            *order = GroupOrder::ByEnd;
        }
    };
    if let Some(scan) = pipeline::by_end(context.query, context.collection) {
        ends_early(&mut nodes);
        let plan = Plan::Pipeline { input: Box::new(covered_last(scan)), nodes };
        return Ok(Planned { plan, rules: FiredRules::default() });
    }
    let Some((access, sort)) = pipeline::by_end_of_leading(context.query, context.collection) else {
        return build_query(context, nodes);
    };
    ends_early(&mut nodes);
    // Among equal values of different types, a scan finds the value with the least `_id` first.
    let query = Query { ties: Ties::ById, ..context.query.sorted_without_pipeline(sort) };
    build_query(&Context { query: &query, access: Some(&access), ..*context }, nodes)
}

/// Returns the plan that reads the last field of an index.
fn covered_last(scan: IndexScan) -> Plan {
    let last = scan.index.pattern.fields().last().map(|(path, _)| path.clone());
    let fields = vec![CoveredField::Indexed(scan.index.pattern.fields().len().saturating_sub(1))];
    Plan::Covered { scan, fields, window: Window::default(), document: drawn(last.as_slice()) }
}

/// Plans the query of a pipeline and adds the pipeline's nodes above it.
fn build_query(context: &Context<'_>, mut nodes: Vec<DocumentNode>) -> Result<Planned> {
    let candidate = select(context)?;
    let rules = candidate.rules;
    let mut planned = Planned { plan: candidate.into_plan(context.query), rules };
    pipeline::add_return_key(&mut nodes, context.query, &planned.plan)?;
    if !nodes.is_empty() {
        pipeline::by_key(&mut nodes, &mut planned.plan);
        planned.plan = Plan::Pipeline { input: Box::new(planned.plan), nodes };
    }
    Ok(planned)
}

/// Returns how many access paths can serve the query. Tests force each of them.
pub(crate) fn candidate_count(collection: &CollectionInfo, query: &Query) -> usize {
    candidates(collection, query).len()
}
