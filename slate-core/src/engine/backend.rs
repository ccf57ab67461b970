use std::{borrow::Cow, path::Path, sync::Arc, time::Duration};

use bson::RawDocument;
use slate_query::raw::Doc;
use slate_store::{Durability, Isolation, Keyspace, Size, Snapshot, Store, Transaction, View};

use super::{BeginOptions, Engine, Explained, Reader, Writer};
use crate::{
    CollectionStats, Existing, Result,
    catalog::{self, Catalog, CatalogCache, CollectionInfo, StatisticsStaleness},
    exec::{self, Resources, Rows},
    interrupt::Interrupt,
    maintenance::{self, VerifyRun},
    plan::{self, FiredRules, Plan, Planned, Query},
    spill::Memory,
    write::{
        AfterCommit, BuildProgress, BuildRound, BuildStart, BulkOperation, BulkOutcome, Created, DeleteOutcome,
        DeleteRequest, Gate, IndexSpec, InsertMode, InsertOutcome, PutKind, PutOutcome, Reads, Session, Shared,
        UpdateOutcome, UpdateRequest,
    },
};

/// Any store, as an engine.
pub(super) struct Backend<S> {
    pub(super) store: S,
    pub(super) shared: Arc<Shared>,
    gate: Arc<Gate>,
}

impl<S: Store> Backend<S> {
    /// Takes a store into use: checks the catalog's format and drops what a crash left to be dropped.
    pub(super) fn open(store: S, memory: Memory) -> Result<Self> {
        let shared = Shared { catalogs: CatalogCache::default(), staleness: StatisticsStaleness::default(), memory };
        let backend = Self { store, shared: Arc::new(shared), gate: Arc::default() };
        let doomed = {
            let reader = backend.reader()?;
            catalog::doomed(&reader.view)?
        };
        if !doomed.is_empty() {
            // A database that is read only keeps them for now.
            let _ = backend.drop_keyspaces(&doomed, Duration::ZERO);
        }
        Ok(backend)
    }

    fn drop_keyspaces(&self, keyspaces: &[Keyspace], wait: Duration) -> Result<()> {
        for &keyspace in keyspaces {
            self.shared.staleness.forget(keyspace);
            self.store.drop_keyspace(keyspace, wait)?;
        }
        let mut transaction = self.store.begin(Isolation::Snapshot, wait)?;
        for &keyspace in keyspaces {
            catalog::forget_doomed(&mut transaction, keyspace)?;
        }
        Ok(transaction.commit(Durability::Deferred)?)
    }

    fn reader(&self) -> Result<SnapshotReader<S::Snapshot>> {
        let (view, catalog) = self.last()?;
        Ok(SnapshotReader { view, catalog, memory: self.shared.memory.clone() })
    }

    /// The last commit, and its catalog.
    pub(super) fn last(&self) -> Result<(S::Snapshot, Arc<Catalog>)> {
        let before = self.shared.catalogs.before();
        let view = self.store.snapshot()?;
        let catalog = self.shared.catalogs.load(before, &view)?;
        Ok((view, catalog))
    }
}

impl<S: Store> Engine for Backend<S> {
    fn name(&self) -> &'static str {
        self.store.name()
    }

    fn snapshot(&self) -> Result<Arc<dyn Reader>> {
        Ok(Arc::new(self.reader()?))
    }

    fn begin(&self, options: &BeginOptions) -> Result<Box<dyn Writer>> {
        // Where writers take turns, no other one comes between a transaction's snapshot and its commit.
        let gate = self.store.capabilities().concurrent_writers.then(|| (Arc::clone(&self.gate), self.gate.began()));
        let before = self.shared.catalogs.before();
        // `Serializable` is what makes guarded keys count; which keys are guarded is decided here.
        let transaction = self.store.begin(Isolation::Serializable, options.wait)?;
        let catalog = self.shared.catalogs.load(before, &transaction.view())?;
        Ok(Box::new(Session::new(transaction, catalog, Arc::clone(&self.shared), gate, options)))
    }

    fn after_commit(&self, work: &AfterCommit, wait: Duration) {
        if !work.dropped.is_empty() {
            // What cannot be dropped now is dropped when the database is opened next.
            let _ = self.drop_keyspaces(&work.dropped, wait);
        }
        self.refresh_statistics(&work.stale);
    }

    fn analyze(&self, collection: &str, wait: Duration) -> Result<()> {
        self.gather_statistics(collection, wait)
    }
    fn flush(&self) -> Result<()> {
        Ok(self.store.flush()?)
    }

    fn backup(&self, to: &Path) -> Result<()> {
        Ok(self.store.backup(to)?)
    }

    fn compact(&self, wait: Duration) -> Result<()> {
        Ok(self.store.compact(wait)?)
    }

    fn size(&self) -> Result<Size> {
        Ok(self.store.size()?)
    }
}

struct SnapshotReader<V> {
    view: V,
    catalog: Arc<Catalog>,
    memory: Memory,
}

impl<V: Snapshot> Reader for SnapshotReader<V> {
    fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    fn find(&self, collection: &str, query: &Query, interrupt: &Interrupt) -> Result<Box<dyn Rows + Send>> {
        exec::find(query, &self.view, &resolve(&self.catalog, collection), &self.memory, interrupt)
    }

    fn get(&self, collection: &str, key: &[u8], see: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        get(&self.view, records(&self.catalog, collection), key, see)
    }

    fn plan(&self, collection: &str, query: &Query) -> Result<Explained> {
        explained(&self.view, &self.catalog, collection, query)
    }

    fn analyze(&self, collection: &str, query: &Query, interrupt: &Interrupt) -> Result<Explained> {
        let resources = Resources::new(interrupt, self.memory.limited(query.memory_limit));
        analyzed(&self.view, &self.catalog, collection, query, &resources)
    }

    fn stats(&self, collection: &str) -> Result<CollectionStats> {
        maintenance::stats(&self.view, &resolve(&self.catalog, collection))
    }

    fn verify(&self, collection: &str, run: &mut VerifyRun<'_>) -> Result<()> {
        maintenance::verify(&self.view, &resolve(&self.catalog, collection), run)
    }
}

impl<T: Transaction> Writer for Session<T> {
    fn catalog(&self) -> &Arc<Catalog> {
        Session::catalog(self)
    }

    fn reads_definition(&mut self, collection: &str) -> Result<()> {
        self.check_open()?;
        Session::reads(self, collection, Reads::Nothing)
    }

    fn find(&mut self, collection: &str, query: &Query, interrupt: &Interrupt) -> Result<Box<dyn Rows + Send>> {
        self.check_open()?;
        Session::reads(self, collection, Reads::Matches(&query.filter))?;
        let interrupt = &self.limited(interrupt);
        let collection = resolve(Session::catalog(self), collection);
        let view = self.view();
        let plan = exec::plan(query, &view, &collection)?.plan;
        Ok(Box::new(exec::gather(plan, &view, &collection, &self.resources(query, interrupt))?))
    }

    fn get(&mut self, collection: &str, key: &[u8], see: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.check_open()?;
        Session::reads(self, collection, Reads::Key(key))?;
        get(&self.view(), records(Session::catalog(self), collection), key, see)
    }

    fn plan(&self, collection: &str, query: &Query) -> Result<Explained> {
        self.check_open()?;
        explained(&self.view(), Session::catalog(self), collection, query)
    }

    fn analyze(&mut self, collection: &str, query: &Query, interrupt: &Interrupt) -> Result<Explained> {
        self.check_open()?;
        // The counts tell of what is there.
        Session::reads(self, collection, Reads::Matches(&query.filter))?;
        let resources = self.resources(query, &self.limited(interrupt));
        analyzed(&self.view(), Session::catalog(self), collection, query, &resources)
    }

    fn stats(&mut self, collection: &str) -> Result<CollectionStats> {
        self.check_open()?;
        Session::reads(self, collection, Reads::All)?;
        maintenance::stats(&self.view(), &resolve(Session::catalog(self), collection))
    }

    fn verify(&mut self, collection: &str, run: &mut VerifyRun<'_>) -> Result<()> {
        self.check_open()?;
        Session::reads(self, collection, Reads::All)?;
        maintenance::verify(&self.view(), &resolve(Session::catalog(self), collection), run)
    }

    fn insert(
        &mut self,
        collection: &str,
        documents: &[&RawDocument],
        mode: InsertMode,
        interrupt: &Interrupt,
    ) -> Result<InsertOutcome> {
        Session::insert(self, collection, documents, mode, interrupt)
    }

    fn update(&mut self, collection: &str, request: &UpdateRequest, interrupt: &Interrupt) -> Result<UpdateOutcome> {
        Session::update(self, collection, request, interrupt)
    }

    fn delete(&mut self, collection: &str, request: &DeleteRequest, interrupt: &Interrupt) -> Result<DeleteOutcome> {
        Session::delete(self, collection, request, interrupt)
    }

    fn put(
        &mut self,
        collection: &str,
        documents: &[&RawDocument],
        kind: PutKind,
        interrupt: &Interrupt,
    ) -> Result<PutOutcome> {
        Session::put(self, collection, documents, kind, interrupt)
    }

    fn bulk(
        &mut self,
        operations: &[(&str, BulkOperation)],
        mode: InsertMode,
        interrupt: &Interrupt,
    ) -> Result<BulkOutcome> {
        Session::bulk(self, operations, mode, interrupt)
    }

    fn create_collection(&mut self, collection: &str) -> Result<bool> {
        Ok(Session::create_collection(self, collection)? == Created::New)
    }

    fn rename_collection(&mut self, from: &str, to: &str, existing: Existing) -> Result<()> {
        Session::rename_collection(self, from, to, existing)
    }

    fn drop_collection(&mut self, collection: &str) -> Result<bool> {
        Session::drop_collection(self, collection)
    }

    fn create_index(
        &mut self,
        collection: &str,
        spec: &IndexSpec,
        interrupt: &Interrupt,
        progress: BuildProgress<'_>,
    ) -> Result<(String, bool)> {
        let (name, created) = Session::create_index(self, collection, spec, interrupt, progress)?;
        Ok((name, created == Created::New))
    }

    fn begin_build(&mut self, collection: &str, spec: &IndexSpec) -> Result<BuildStart> {
        Session::begin_build(self, collection, spec)
    }

    fn build_round(&mut self, keyspace: Keyspace, limit: usize) -> Result<BuildRound> {
        Session::build_round(self, keyspace, limit)
    }

    fn abandon_build(&mut self, keyspace: Keyspace) -> Result<()> {
        Session::abandon_build(self, keyspace)
    }

    fn drop_index(&mut self, collection: &str, index: &str) -> Result<bool> {
        Session::drop_index(self, collection, index)
    }

    fn end(&mut self, why: &str) {
        Session::end(self, why);
    }

    fn commit(self: Box<Self>, durability: Durability) -> Result<AfterCommit> {
        Session::commit(*self, durability)
    }
}

/// The collection; one that is not there is read as empty.
fn resolve<'c>(catalog: &'c Catalog, name: &str) -> Cow<'c, CollectionInfo> {
    // No keyspace is ever numbered so high, and an unknown keyspace is empty.
    let absent = || Cow::Owned(CollectionInfo::new(name, Keyspace(u32::MAX)));
    catalog.collection(name).map_or_else(absent, |collection| Cow::Borrowed(&**collection))
}

fn explained<V: View>(view: &V, catalog: &Catalog, name: &str, query: &Query) -> Result<Explained> {
    let Some(collection) = catalog.collection(name) else {
        let plan = Plan::eof("the collection does not exist");
        return Ok(Explained { plan, rules: FiredRules::default(), candidates: 0, analysis: None });
    };
    let Planned { plan, rules } = exec::plan(query, view, collection)?;
    Ok(Explained { plan, rules, candidates: plan::candidate_count(collection, query), analysis: None })
}

fn analyzed<V: View>(
    view: &V,
    catalog: &Catalog,
    name: &str,
    query: &Query,
    resources: &Resources,
) -> Result<Explained> {
    let explained = explained(view, catalog, name, query)?;
    let analysis = exec::analyze(explained.plan.clone(), view, &resolve(catalog, name), resources)?;
    Ok(Explained { analysis: Some(analysis), ..explained })
}

/// Where the records of a collection lie.
fn records(catalog: &Catalog, collection: &str) -> Option<Keyspace> {
    catalog.collection(collection).map(|collection| collection.records)
}

fn get<V: View>(
    view: &V,
    records: Option<Keyspace>,
    key: &[u8],
    see: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let Some(records) = records else { return Ok(()) };
    view.get(records, key, |stored| see(Doc::stored(stored).bytes()))?.unwrap_or(Ok(()))
}
