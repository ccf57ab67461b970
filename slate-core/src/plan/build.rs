use slate_store::Keyspace;

use super::{ByteRange, Output, Plan, Query, RawPlan, candidates::candidates, rules};
use crate::{Result, catalog::CollectionInfo};

/// What a rule may ask of besides the plan.
pub(crate) struct Context<'a> {
    pub(crate) collection: &'a CollectionInfo,
    pub(crate) query: &'a Query,
    pub(crate) probe: &'a dyn Probe,
}

/// A bounded look at the data.
pub(crate) trait Probe {
    /// How many keys lie within the ranges, counted up to `cap`: the same on every backend.
    fn count(&self, keyspace: Keyspace, ranges: &[ByteRange], cap: u64) -> Result<u64>;
}

/// The plan for a query.
///
/// # Errors
/// A hint that names no index, or one that would lose rows; a forced candidate that is not there.
pub(crate) fn build(context: &Context<'_>) -> Result<Plan> {
    let mut plan = naive(context.query);
    for rule in rules::ALL {
        rule(&mut plan, context)?;
    }
    Ok(plan)
}

/// How many access paths could serve the query, each of which can be forced.
pub(crate) fn candidate_count(collection: &CollectionInfo, query: &Query) -> usize {
    candidates(collection, query).len()
}

/// The plan that is right by construction: read everything, leave out, order, cut, shape.
fn naive(query: &Query) -> Plan {
    let mut input = RawPlan::everything();
    if !query.filter.is_empty() {
        input = RawPlan::Filter { input: Box::new(input), filter: query.filter.clone() };
    }
    if let Some(sort) = query.order() {
        input = RawPlan::Sort { input: Box::new(input), sort: sort.clone(), presorted: 0, limit: None };
    }
    if !query.window().is_whole() {
        input = RawPlan::Slice { input: Box::new(input), window: query.window() };
    }
    match &query.output {
        Output::Whole => Plan::Whole { input },
        Output::Project { projection, .. } if projection.is_identity() => Plan::Whole { input },
        Output::Project { projection, document } => Plan::Project {
            input,
            projection: projection.clone(),
            document: document.clone(),
            filter: query.filter.clone(),
        },
        Output::Count => Plan::Count { input },
        Output::Distinct { path, values } => Plan::Distinct { input, path: path.clone(), values: *values },
    }
}
