use std::{borrow::Cow, sync::Arc};

use slate_query::raw::Doc;
use slate_store::{Snapshot, View};

use super::Reader;
use crate::{
    Error, Result,
    api::options::ExplainVerbosity,
    catalog::{Catalog, CollectionInfo, Namespace, not_on_view},
    exec::{self, Resources, express},
    interrupt::Interrupt,
    maintenance,
    metrics::{Call, ObservedRows, OperationKind, PointRead},
    operation::read_op::{Explained, ReadOp, ReadOutput},
    plan::{self, Plan, Planned, Query},
    spill::Memory,
    trace,
};

/// A store's snapshot and its catalog.
pub(super) struct SnapshotReader<V> {
    view: V,
    catalog: Arc<Catalog>,
    memory: Memory,
}

impl<V: Snapshot> SnapshotReader<V> {
    pub(super) fn new(view: V, catalog: Arc<Catalog>, memory: Memory) -> Self {
        Self { view, catalog, memory }
    }

    pub(super) fn view(&self) -> &V {
        &self.view
    }
}

impl<V: Snapshot> Reader for SnapshotReader<V> {
    fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    fn read(&self, collection: &str, op: ReadOp<'_, '_>) -> Result<ReadOutput> {
        read_snapshot(&self.view, &self.catalog, &self.memory, collection, op)
    }
}

/// Executes a read on a snapshot. Rows are read as they are consumed.
pub(super) fn read_snapshot<V: Snapshot>(
    view: &V,
    catalog: &Arc<Catalog>,
    memory: &Memory,
    collection: &str,
    op: ReadOp<'_, '_>,
) -> Result<ReadOutput> {
    match op {
        ReadOp::Find { query, interrupt } => find(view, catalog, memory, collection, query, interrupt),
        op => read(view, catalog, memory, collection, op),
    }
}

/// Executes a query by the express path if possible, with a plan otherwise. The rows own the parts of the snapshot that they
/// need.
fn find<V: Snapshot>(
    snapshot: &V,
    catalog: &Arc<Catalog>,
    memory: &Memory,
    collection: &str,
    query: &Query,
    interrupt: &Interrupt,
) -> Result<ReadOutput> {
    let collection = &*query.target(catalog, collection)?;
    let mut call = Call::of_query(memory.observer(), query, collection);
    if let Some(rows) = call.within(|| express::find(query, snapshot, collection, interrupt))? {
        call.examined(rows.keys(), rows.documents());
        return Ok(ReadOutput::Rows(Box::new(ObservedRows::new(rows, call))));
    }
    let resources = resources(query, catalog, memory, interrupt);
    call.tallied(&resources.tally);
    let rows = call.within(|| {
        let plan = resources.executes(query, collection, plan::build(query, snapshot, collection)?);
        exec::open(plan, snapshot, collection, &resources)
    })?;
    Ok(ReadOutput::Rows(Box::new(ObservedRows::new(rows, call))))
}

/// Executes a read on any view. The rows of a query are all read at once.
pub(super) fn read<V: View>(
    view: &V,
    catalog: &Arc<Catalog>,
    memory: &Memory,
    collection: &str,
    op: ReadOp<'_, '_>,
) -> Result<ReadOutput> {
    Ok(match op {
        ReadOp::Definition => match catalog.view(collection) {
            Some(view) => Some(Namespace::View(Arc::clone(view))).into(),
            None => catalog.collection(collection).cloned().map(Namespace::Collection).into(),
        },
        ReadOp::Find { query, interrupt } => {
            let collection = query.target(catalog, collection)?;
            let resources = resources(query, catalog, memory, interrupt);
            let mut call = Call::of_query(memory.observer(), query, &collection);
            call.tallied(&resources.tally);
            let gathered = call.within(|| {
                let plan = resources.executes(query, &collection, plan::build(query, view, &collection)?);
                exec::gather(plan, view, &collection, &resources)
            })?;
            ReadOutput::Rows(Box::new(ObservedRows::new(gathered, call)))
        }
        ReadOp::Get { key, visitor } => {
            let visit = || get(view, catalog, collection, key, visitor);
            trace::point_read(collection, || memory.observer().point_read(collection, visit))?;
            ().into()
        }
        ReadOp::Explain { query, verbosity, interrupt } => {
            let explained = Call::measure(memory.observer(), OperationKind::Explain, Some(collection), || {
                let mut explained = explain(view, catalog, collection, query)?;
                if verbosity == ExplainVerbosity::ExecutionStats {
                    let resources = resources(query, catalog, memory, interrupt);
                    let (plan, collection) = (explained.plan.clone(), query.target(catalog, collection)?);
                    explained.analysis = Some(exec::analyze(plan, view, &collection, &resources)?);
                }
                Ok(explained)
            })?;
            Box::new(explained).into()
        }
        ReadOp::Stats { interrupt } => {
            Call::measure(memory.observer(), OperationKind::Inspection, Some(collection), || {
                maintenance::stats(view, &*resolve(catalog, collection)?, interrupt)
            })?
            .into()
        }
        ReadOp::Verify(run) => Call::measure(memory.observer(), OperationKind::Inspection, Some(collection), || {
            maintenance::verify(view, &*resolve(catalog, collection)?, run)
        })?
        .into(),
    })
}

/// Calls `visitor` with the record of a key, if it exists.
pub(super) fn get<V: View>(
    view: &V,
    catalog: &Catalog,
    collection: &str,
    key: &[u8],
    visitor: &mut dyn FnMut(Doc<'_>) -> Result<()>,
) -> Result<PointRead> {
    let Some(collection) = catalog.collection(collection) else {
        // A view has no records of its own.
        return match catalog.view(collection) {
            Some(_) => Err(Error::redefined(collection, catalog.definitions(collection, std::iter::empty())?)),
            None => Ok(PointRead::Missing),
        };
    };
    collection.uses.ids.add();
    let found = view.get(collection.records, key, |stored| PointRead::visit(Doc::stored(stored), visitor))?;
    found.unwrap_or(Ok(PointRead::Missing))
}

/// Returns the resources of a query's execution.
fn resources(query: &Query, catalog: &Arc<Catalog>, memory: &Memory, interrupt: &Interrupt) -> Resources {
    Resources::new(interrupt, memory.of(query.memory), catalog).with_views(&query.others)
}

/// Returns the collection, or an empty one if it does not exist.
///
/// # Errors
/// `CommandNotSupportedOnView` (166) for a view.
fn resolve<'c>(catalog: &'c Catalog, name: &str) -> Result<Cow<'c, CollectionInfo>> {
    if catalog.view(name).is_some() {
        return Err(not_on_view(name));
    }
    let absent = || Cow::Owned(CollectionInfo::absent(name));
    Ok(catalog.collection(name).map_or_else(absent, |collection| Cow::Borrowed(&**collection)))
}

fn explain<V: View>(view: &V, catalog: &Catalog, name: &str, query: &Query) -> Result<Explained> {
    let collection = &*query.target(catalog, name)?;
    // A stage can have its own documents (`$documents`).
    if catalog.collection(&collection.name).is_none() && query.pipeline.nodes.is_empty() {
        let plan = Plan::eof("the collection does not exist");
        let collection = Arc::clone(&collection.name);
        return Ok(Explained { collection, plan, rules: Vec::new(), candidates: 0, analysis: None });
    }
    let Planned { plan, rules } = plan::build(query, view, collection)?;
    let rules = query.rules(rules).collect();
    let candidates = plan::candidate_count(collection, query);
    Ok(Explained { collection: Arc::clone(&collection.name), plan, rules, candidates, analysis: None })
}
