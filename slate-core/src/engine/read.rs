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
        Source { view: &self.view, catalog: &self.catalog, memory: &self.memory }.read_snapshot(collection, op)
    }
}

/// What a read is executed on: a view and its catalog.
pub(super) struct Source<'s, V> {
    pub(super) view: &'s V,
    pub(super) catalog: &'s Arc<Catalog>,
    pub(super) memory: &'s Memory,
}

impl<V: Snapshot> Source<'_, V> {
    /// Executes a read on a snapshot. Rows are read as they are consumed.
    pub(super) fn read_snapshot(&self, collection: &str, op: ReadOp<'_, '_>) -> Result<ReadOutput> {
        match op {
            ReadOp::Find { query, interrupt } => self.find(collection, query, interrupt),
            op => self.read(collection, op),
        }
    }

    /// Executes a query by the express path if possible, with a plan otherwise. The rows own the parts of the snapshot that they
    /// need.
    fn find(&self, collection: &str, query: &Query, interrupt: &Interrupt) -> Result<ReadOutput> {
        let collection = &*query.target(self.catalog, collection)?;
        let mut call = Call::of_query(self.memory.observer(), query, collection);
        if let Some(rows) = call.within(|| express::find(query, self.view, collection, interrupt))? {
            call.examined(rows.keys(), rows.documents());
            return Ok(ReadOutput::Rows(Box::new(ObservedRows::new(rows, call))));
        }
        let resources = self.resources(query, interrupt);
        call.tallied(&resources.tally);
        let rows = call.within(|| {
            let plan = resources.executes(query, collection, plan::build(query, self.view, collection)?);
            exec::open(plan, self.view, collection, &resources)
        })?;
        Ok(ReadOutput::Rows(Box::new(ObservedRows::new(rows, call))))
    }
}

impl<V: View> Source<'_, V> {
    /// Executes a read on any view. The rows of a query are all read at once.
    pub(super) fn read(&self, collection: &str, op: ReadOp<'_, '_>) -> Result<ReadOutput> {
        let &Self { view, catalog, memory } = self;
        Ok(match op {
            ReadOp::Definition => match catalog.view(collection) {
                Some(view) => Some(Namespace::View(Arc::clone(view))).into(),
                None => catalog.collection(collection).cloned().map(Namespace::Collection).into(),
            },
            ReadOp::Find { query, interrupt } => {
                let collection = query.target(catalog, collection)?;
                let resources = self.resources(query, interrupt);
                let mut call = Call::of_query(memory.observer(), query, &collection);
                call.tallied(&resources.tally);
                let gathered = call.within(|| {
                    let plan = resources.executes(query, &collection, plan::build(query, view, &collection)?);
                    exec::gather(plan, view, &collection, &resources)
                })?;
                ReadOutput::Rows(Box::new(ObservedRows::new(gathered, call)))
            }
            ReadOp::Get { key, visitor } => {
                let visit = || self.get(collection, key, visitor);
                trace::point_read(collection, || memory.observer().point_read(collection, visit))?;
                ().into()
            }
            ReadOp::Explain { query, verbosity, interrupt } => {
                let explained = Call::measure(memory.observer(), OperationKind::Explain, Some(collection), || {
                    let mut explained = self.explain(collection, query)?;
                    if verbosity == ExplainVerbosity::ExecutionStats {
                        let resources = self.resources(query, interrupt);
                        let (plan, collection) = (explained.plan.clone(), query.target(catalog, collection)?);
                        explained.analysis = Some(exec::analyze(plan, view, &collection, &resources)?);
                    }
                    Ok(explained)
                })?;
                Box::new(explained).into()
            }
            ReadOp::Stats { interrupt } => {
                Call::measure(memory.observer(), OperationKind::Inspection, Some(collection), || {
                    maintenance::stats(view, &*self.resolve(collection)?, interrupt)
                })?
                .into()
            }
            ReadOp::Verify(run) => {
                Call::measure(memory.observer(), OperationKind::Inspection, Some(collection), || {
                    maintenance::verify(view, &*self.resolve(collection)?, run)
                })?
                .into()
            }
        })
    }

    /// Calls `visitor` with the record of a key, if it exists.
    pub(super) fn get(
        &self,
        collection: &str,
        key: &[u8],
        visitor: &mut dyn FnMut(Doc<'_>) -> Result<()>,
    ) -> Result<PointRead> {
        let catalog = self.catalog;
        let Some(collection) = catalog.collection(collection) else {
            // A view has no records of its own.
            return match catalog.view(collection) {
                Some(_) => Err(Error::redefined(collection, catalog.definitions(collection, std::iter::empty())?)),
                None => Ok(PointRead::Missing),
            };
        };
        collection.uses.ids.add();
        let found = self.view.get(collection.records, key, |stored| PointRead::visit(Doc::stored(stored), visitor))?;
        found.unwrap_or(Ok(PointRead::Missing))
    }

    /// Returns the resources of a query's execution.
    fn resources(&self, query: &Query, interrupt: &Interrupt) -> Resources {
        Resources::new(interrupt, self.memory.of(query.memory), self.catalog).with_views(&query.others)
    }

    /// Returns the collection, or an empty one if it does not exist.
    ///
    /// # Errors
    /// `CommandNotSupportedOnView` (166) for a view.
    fn resolve(&self, name: &str) -> Result<Cow<'_, CollectionInfo>> {
        if self.catalog.view(name).is_some() {
            return Err(not_on_view(name));
        }
        Ok(self.catalog.collection_or_empty(name))
    }

    fn explain(&self, name: &str, query: &Query) -> Result<Explained> {
        let collection = &*query.target(self.catalog, name)?;
        // A stage can have its own documents (`$documents`).
        if self.catalog.collection(&collection.name).is_none() && query.pipeline.nodes.is_empty() {
            let plan = Plan::eof("the collection does not exist");
            let collection = Arc::clone(&collection.name);
            return Ok(Explained { collection, plan, rules: Vec::new(), candidates: 0, analysis: None });
        }
        let Planned { plan, rules } = plan::build(query, self.view, collection)?;
        let rules = query.rules(rules).collect();
        let candidates = plan::candidate_count(collection, query);
        Ok(Explained { collection: Arc::clone(&collection.name), plan, rules, candidates, analysis: None })
    }
}
