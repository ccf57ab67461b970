use slate_query::pipeline::Kept;
use slate_store::View;

use super::{
    Access, CoveredField, DocumentNode, Drawing, GroupOrder, IndexScan, Output, Plan, Query, RawPlan, Ties, Window,
    candidates::candidates,
    cost::{Probe, ViewProbe},
    keys_only::drawn,
    pipeline,
    rules::{self, FiredRules, Outcome},
};
use crate::{Result, catalog::CollectionInfo, metrics::trace};

/// The data that rules use in addition to the plan.
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
    let mut planned = Planned { plan: naive(context.query), rules: FiredRules::default() };
    for (number, rule) in rules::ALL.iter().enumerate() {
        let outcome = (rule.apply)(&mut planned.plan, context)?;
        if outcome != Outcome::Unchanged {
            planned.rules.add(number);
        }
        if outcome == Outcome::Finished {
            break;
        }
    }
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

/// Builds the plan that is correct by construction: scan, filter, sort, slice, project.
fn naive(query: &Query) -> Plan {
    let mut input = RawPlan::full_scan();
    if !query.filter.is_empty() {
        input = RawPlan::Filter { input: Box::new(input), filter: query.filter.clone() };
    }
    if let Some(sort) = query.order() {
        let kept = match &query.output {
            Output::Fields(fields) => Kept::paths(fields),
            _ => Kept::default(),
        };
        input = RawPlan::Sort { input: Box::new(input), sort: sort.clone(), presorted: 0, limit: None, kept };
    }
    if !query.window().is_all() {
        input = RawPlan::Slice { input: Box::new(input), window: query.window() };
    }
    match &query.output {
        Output::Whole | Output::Key | Output::Fields(_) => Plan::Whole { input },
        Output::Project { projection, .. } if projection.is_identity() => Plan::Whole { input },
        Output::Project { projection, document } => Plan::Project {
            input,
            projection: projection.clone(),
            document: document.clone(),
            filter: query.filter.clone(),
        },
        Output::Count => Plan::Count { input },
        Output::Distinct { path, values } => Plan::Distinct { input, path: path.clone(), values: values.clone() },
    }
}
