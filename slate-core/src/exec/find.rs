use std::sync::Arc;

use slate_store::{Snapshot, View};

use super::{Resources, Rows, ViewProbe, express, open};
use crate::{
    Result,
    catalog::{Catalog, CollectionInfo},
    interrupt::Interrupt,
    metrics::{Call, ObservedRows},
    plan::{self, Drawing, Planned, Query},
    spill::Memory,
    trace,
};

/// Executes a query of a collection or view with the express path if possible, with a plan otherwise. The rows own the parts of the
/// snapshot that they need.
pub(crate) fn find<V: Snapshot>(
    query: &Query,
    snapshot: &V,
    collection: &str,
    catalog: &Arc<Catalog>,
    memory: &Memory,
    interrupt: &Interrupt,
) -> Result<Box<dyn Rows + Send>> {
    let collection = &*query.target(catalog, collection)?;
    let mut call = Call::of_query(memory.observer(), query, collection);
    if let Some(rows) = call.within(|| express::find(query, snapshot, collection, interrupt))? {
        call.examined(rows.keys(), rows.documents());
        return Ok(Box::new(ObservedRows::new(rows, call)));
    }
    let resources = Resources::new(interrupt, memory.of(query.memory), catalog).with_views(&query.others);
    call.tallied(&resources.tally);
    let opened = call.within(|| {
        let plan = resources.executes(query, collection, plan(query, snapshot, collection)?);
        open(plan, snapshot, collection, &resources)
    })?;
    Ok(Box::new(ObservedRows::new(opened, call)))
}

/// Plans a query. The planner probes `view`.
pub(crate) fn plan<V: View>(query: &Query, view: &V, collection: &CollectionInfo) -> Result<Planned> {
    let planned = plan::build(&plan::Context { collection, query, probe: &ViewProbe::new(view), access: None })?;
    trace::planned(query.kind, &collection.name, &planned.plan, |plan| {
        let rules = query.rules(planned.rules).collect();
        Drawing::new(plan, rules, &collection.name).draw()
    });
    Ok(planned)
}
