use std::sync::Arc;

use slate_store::{Snapshot, View};

use super::{Resources, Rows, ViewProbe, express, open};
use crate::{
    Result,
    catalog::{Catalog, CollectionInfo},
    interrupt::Interrupt,
    metrics::{Call, ObservedRows},
    plan::{self, Planned, Query},
    spill::Memory,
};

/// Executes a query with the express path if possible, with a plan otherwise. The rows own the parts of the
/// snapshot that they need.
pub(crate) fn find<V: Snapshot>(
    query: &Query,
    snapshot: &V,
    collection: &CollectionInfo,
    catalog: &Arc<Catalog>,
    memory: &Memory,
    interrupt: &Interrupt,
) -> Result<Box<dyn Rows + Send>> {
    query.check(collection)?;
    let mut call = Call::new(memory.observer(), query.kind);
    let found = express::find(query, snapshot, collection, interrupt);
    if let Some(rows) = call.checked(found)? {
        call.examined(rows.keys(), rows.documents());
        return Ok(Box::new(ObservedRows::new(rows, call)));
    }
    let opened = plan(query, snapshot, collection).and_then(|Planned { plan, .. }| {
        let resources = Resources::new(interrupt, memory.of(query.memory), catalog);
        open(plan, snapshot, collection, &resources)
    });
    Ok(Box::new(ObservedRows::new(call.checked(opened)?, call)))
}

/// Plans a query. The planner probes `view`.
pub(crate) fn plan<V: View>(query: &Query, view: &V, collection: &CollectionInfo) -> Result<Planned> {
    plan::build(&plan::Context { collection, query, probe: &ViewProbe::new(view), access: None })
}
