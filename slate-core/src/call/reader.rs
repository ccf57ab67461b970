use std::{borrow::Cow, sync::Arc};

use slate_query::raw::Doc;
use slate_store::{Damage, Snapshot, View};

use super::{
    engine::{ChangeVisitor, IdMatch, Reader, RecordVisitor},
    measured::{Cursor, MeasuredCall},
    writer::located,
};
use crate::{
    CollectionStats, ExplainVerbosity, Result,
    call_context::CallContext,
    catalog::{Catalog, CollectionInfo, not_on_view},
    changes::{self, LogCounts, Position},
    exec::{self, Resources, express},
    metrics::{OperationKind, PointRead, trace},
    plan::{self, Explained, Plan, Planned, Query},
    spill::Memory,
    stats,
    verify::{self, VerifyRun},
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

    /// Like [`get`](Reader::get), not counted. Calls `confirm` before it returns or visits anything; if the reader has an outdated catalog, the read
    /// is postponed.
    pub(super) fn visit(
        &self,
        collection: &str,
        key: &[u8],
        id: IdMatch,
        confirm: impl FnOnce() -> Result<bool>,
        visitor: RecordVisitor<'_>,
    ) -> Result<PointRead> {
        self.source().visit(collection, key, id, confirm, visitor)
    }

    fn source(&self) -> ReadSource<'_, V> {
        ReadSource { view: &self.view, catalog: &self.catalog, memory: &self.memory }
    }
}

impl<V: Snapshot> ReadOn for SnapshotReader<V> {
    type View<'v> = V;

    fn read<R>(&self, read: impl FnOnce(ReadSource<'_, V>) -> Result<R>) -> Result<R> {
        read(self.source()).map_err(|error| located(error, &self.catalog))
    }

    fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Executes a query by the express path if possible, with a plan otherwise. The rows own the parts of the snapshot that they
    /// need.
    fn find(&self, collection: &CollectionInfo, query: &Query, call: &CallContext) -> Result<Cursor> {
        let source = self.source();
        let mut measured = MeasuredCall::of_query(self.memory.observer(), query, collection, call);
        if let Some(equality) = query.filter.single_equality()
            && let Some(rows) = measured
                .within(|| express::find(query, &equality, &self.view, collection, call))
                .map_err(|error| located(error, &self.catalog))?
        {
            measured.examined(rows.keys(), rows.documents());
            return Ok(Cursor::new(Box::new(rows), measured, &self.catalog, collection));
        }
        let resources = source.resources(query, call);
        measured.tallied(&resources.tally);
        let rows = measured.within(|| {
            let plan = resources.executes(query, collection, plan::build(query, &self.view, collection)?);
            exec::open(plan, &self.view, collection, &resources)
        });
        let rows = rows.map_err(|error| located(error, &self.catalog))?;
        Ok(Cursor::new(rows, measured, &self.catalog, collection).limited(query, call, &self.memory))
    }

    fn limited(&self, call: &CallContext) -> CallContext {
        call.clone()
    }
}

/// A snapshot or an open transaction, on which reads are executed.
pub(super) trait ReadOn: 'static {
    type View<'v>: View;

    fn catalog(&self) -> &Arc<Catalog>;

    fn memory(&self) -> &Memory;

    /// Executes a read. Adds collection and index to its error.
    ///
    /// # Errors
    /// The errors of the read, and of a transaction that has ended.
    fn read<R>(&self, read: impl FnOnce(ReadSource<'_, Self::View<'_>>) -> Result<R>) -> Result<R>;

    /// Executes a query, as [`Reader::find`] does.
    fn find(&self, collection: &CollectionInfo, query: &Query, call: &CallContext) -> Result<Cursor>;

    /// Returns the context of a call; in a transaction, with its limits added.
    fn limited(&self, call: &CallContext) -> CallContext;

    /// Executes and counts an inspection of a collection, or of an empty one if it does not exist.
    fn inspect<R>(
        &self,
        collection: &str,
        inspection: impl FnOnce(&Self::View<'_>, &CollectionInfo) -> Result<R>,
    ) -> Result<R> {
        self.read(|source| {
            MeasuredCall::measure(source.memory.observer(), OperationKind::Inspection, Some(collection), || {
                inspection(source.view, &*source.resolve(collection)?)
            })
        })
    }
}

impl<S: ReadOn> Reader for S {
    fn catalog(&self) -> &Arc<Catalog> {
        ReadOn::catalog(self)
    }

    fn memory(&self) -> &Memory {
        ReadOn::memory(self)
    }

    fn find(&self, collection: &CollectionInfo, query: &Query, call: &CallContext) -> Result<Cursor> {
        ReadOn::find(self, collection, query, call)
    }

    fn get(&self, collection: &str, key: &[u8], visitor: RecordVisitor<'_>) -> Result<PointRead> {
        self.read(|source| {
            let visit = || source.visit(collection, key, IdMatch::Key, || Ok(true), visitor);
            trace::point_read(collection, || source.memory.observer().point_read(collection, visit))
        })
    }

    fn explain(
        &self,
        collection: &CollectionInfo,
        query: &Query,
        verbosity: ExplainVerbosity,
        call: &CallContext,
    ) -> Result<Explained> {
        let call = &self.limited(call);
        self.read(|source| {
            MeasuredCall::measure(source.memory.observer(), OperationKind::Explain, Some(&collection.name), || {
                let mut explained = source.planned(collection, query)?;
                if verbosity == ExplainVerbosity::ExecutionStats {
                    let resources = source.resources(query, call);
                    let analysis = exec::analyze(explained.plan.clone(), source.view, collection, &resources)?;
                    explained.analysis = Some(analysis);
                }
                Ok(explained)
            })
        })
    }

    fn changes(&self, after: Position, visitor: ChangeVisitor<'_>) -> Result<Option<Position>> {
        self.read(|source| match source.catalog.change_log() {
            Some(log) => changes::read(source.view, log, after, visitor),
            None => Ok(None),
        })
    }

    fn last_change(&self) -> Result<Position> {
        self.read(|source| match source.catalog.change_log() {
            Some(log) => changes::last_position(source.view, log),
            None => Ok(Position::default()),
        })
    }

    fn change_at(&self, stamp: u64) -> Result<Option<Position>> {
        self.read(|source| match source.catalog.change_log() {
            Some(log) => changes::position_at(source.view, log, stamp),
            None => Ok(None),
        })
    }

    fn trimmed_changes(&self) -> Result<Position> {
        self.read(|source| match source.catalog.change_log() {
            Some(log) => changes::trimmed(source.view, log),
            None => Ok(Position::default()),
        })
    }

    fn change_counts(&self) -> Result<Option<LogCounts>> {
        self.read(|source| source.catalog.change_log().map(|log| changes::counts(source.view, log)).transpose())
    }

    fn stats(&self, collection: &str, call: &CallContext) -> Result<CollectionStats> {
        self.inspect(collection, |view, collection| stats::stats(view, collection, &call.interrupt))
    }

    fn verify(&self, collection: &str, run: &mut VerifyRun<'_>) -> Result<()> {
        self.inspect(collection, |view, collection| verify::verify(view, collection, run))
    }

    fn salvage(
        &self,
        collection: &str,
        damages: &[Damage],
        run: &mut VerifyRun<'_>,
        visitor: &mut dyn FnMut(Doc<'_>) -> Result<()>,
    ) -> Result<()> {
        self.inspect(collection, |view, collection| verify::salvage(view, collection, damages, run, visitor))
    }
}

/// A store's view and its catalog, on which a read is executed.
pub(super) struct ReadSource<'s, V> {
    pub(super) view: &'s V,
    pub(super) catalog: &'s Arc<Catalog>,
    pub(super) memory: &'s Memory,
}

impl<V: View> ReadSource<'_, V> {
    /// Runs a query with a plan, and reads all its rows at once.
    pub(super) fn gather(&self, collection: &CollectionInfo, query: &Query, call: &CallContext) -> Result<Cursor> {
        let resources = self.resources(query, call);
        let mut measured = MeasuredCall::of_query(self.memory.observer(), query, collection, call);
        measured.tallied(&resources.tally);
        let gathered = measured.within(|| {
            let plan = resources.executes(query, collection, plan::build(query, self.view, collection)?);
            exec::gather(plan, self.view, collection, &resources)
        })?;
        Ok(Cursor::new(Box::new(gathered), measured, self.catalog, collection))
    }

    fn visit(
        &self,
        collection: &str,
        key: &[u8],
        id: IdMatch,
        confirm: impl FnOnce() -> Result<bool>,
        visitor: RecordVisitor<'_>,
    ) -> Result<PointRead> {
        let without_read = match self.catalog.collection(collection) {
            None if self.catalog.view(collection).is_some() => Err(PointRead::NeedsQuery),
            None => Err(PointRead::Missing),
            Some(found) if id == IdMatch::Filter && found.collation.is_some() => Err(PointRead::NeedsQuery),
            Some(found) => Ok(found),
        };
        let found = match without_read {
            Err(read) => return Ok(if confirm()? { read } else { PointRead::Postponed }),
            Ok(found) => found,
        };
        found.uses.ids.add();
        let mut confirm = Some(confirm);
        let mut confirmed = move || confirm.take().map_or(Ok(true), |confirm| confirm());
        let visit = |stored: &[u8]| match confirmed()? {
            true => PointRead::visit(Doc::stored(stored), visitor),
            false => Ok(PointRead::Postponed),
        };
        match self.view.get(found.records, key, visit) {
            Ok(Some(read)) => read,
            Ok(None) => Ok(if confirmed()? { PointRead::Missing } else { PointRead::Postponed }),
            Err(error) => Err(located(error.into(), self.catalog)),
        }
    }

    fn planned(&self, collection: &CollectionInfo, query: &Query) -> Result<Explained> {
        let name = Arc::clone(&collection.name);
        // A pipeline can have documents without a collection (`$documents`).
        if self.catalog.collection(&name).is_none() && query.pipeline.nodes.is_empty() {
            let plan = Plan::eof("the collection does not exist");
            return Ok(Explained { collection: name, plan, rules: Vec::new(), candidates: 0, analysis: None });
        }
        let Planned { plan, rules } = plan::build(query, self.view, collection)?;
        let rules = query.rules(rules).collect();
        let candidates = plan::candidate_count(collection, query);
        Ok(Explained { collection: name, plan, rules, candidates, analysis: None })
    }

    /// Returns the resources of a query's execution.
    fn resources(&self, query: &Query, call: &CallContext) -> Resources {
        Resources::new(call, self.memory.of(call.memory), self.catalog).with_views(&query.others)
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
}

#[cfg(test)]
mod tests {
    use slate_store::{Context, Error, Keyspace, Store, memory::MemoryStore};

    use super::*;

    #[test]
    fn damage_that_read_or_inspect_finds_names_its_collection() {
        let records = Keyspace(40);
        let mut catalog = Catalog::default();
        catalog.put(CollectionInfo::new("users", records));
        let view = MemoryStore::default().snapshot().unwrap();
        let reader = SnapshotReader::new(view, Arc::new(catalog), Memory::default());
        let damage = || crate::Error::from(Error::Corrupt(Box::new(Context::new("").on(records, b"key"))));
        let errors = [
            reader.read(|_| Err::<(), _>(damage())).unwrap_err(),
            reader.inspect("users", |_, _| Err::<(), _>(damage())).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.collection(), Some("users"), "{error:?}");
        }
    }
}
