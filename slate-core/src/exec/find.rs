use std::sync::Arc;

use slate_store::{Snapshot, View};

use super::{Resources, Rows, ViewProbe, express, open};
use crate::{
    Result,
    catalog::{Catalog, CollectionInfo},
    interrupt::Interrupt,
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
    if let Some(rows) = express::find(query, snapshot, collection, interrupt)? {
        return Ok(Box::new(rows));
    }
    let Planned { plan, .. } = plan(query, snapshot, collection)?;
    let resources = Resources::new(interrupt, memory.of(query.memory), catalog);
    Ok(Box::new(open(plan, snapshot, collection, &resources)?))
}

/// Plans a query. The planner probes `view`.
pub(crate) fn plan<V: View>(query: &Query, view: &V, collection: &CollectionInfo) -> Result<Planned> {
    plan::build(&plan::Context { collection, query, probe: &ViewProbe::new(view) })
}
