//! Executes the calls of a transaction: each in a span, counted, and with conflicts that name their collection.

use std::sync::Arc;

use bson::RawDocument;
use slate_store::{Durability, Keyspace, Transaction};

use super::{
    engine::{ReadSet, Reader, Writer},
    measured::{Cursor, MeasuredCall},
    reader::{ReadOn, ReadSource},
};
use crate::{
    ChangeLog, Error, RenameTarget, Result,
    call_context::CallContext,
    catalog::{Catalog, CollectionInfo, ResolvedView},
    changes::Images,
    exec::Rows,
    metrics::{OperationKind, Subject},
    plan::Query,
    spill::Memory,
    write::{
        AfterCommit, BuildProgress, BuildRound, BuildStart, BuildSteps, BulkOperation, BulkOutcome, CollectionSpec,
        Confirmed, Created, DeleteOutcome, DeleteRequest, ExpireOutcome, IndexSpec, InsertMode, InsertOutcome, PutKind,
        PutOutcome, Reads, Session, UpdateOutcome, UpdateRequest, ValidatorSpec, ViewSpec, Visibility, WriteOutcome,
        key_place,
    },
};

impl<T: Transaction> ReadOn for Session<T> {
    type View<'v> = T::View<'v>;

    fn catalog(&self) -> &Arc<Catalog> {
        Session::catalog(self)
    }

    fn memory(&self) -> &Memory {
        Session::memory(self)
    }

    fn read<R>(&self, read: impl FnOnce(ReadSource<'_, T::View<'_>>) -> Result<R>) -> Result<R> {
        self.check_open()?;
        let source = ReadSource { view: &self.view(), catalog: self.catalog(), memory: self.memory() };
        read(source).map_err(|error| located(error, self.catalog()))
    }

    fn find(&self, collection: &CollectionInfo, query: &Query, call: &CallContext) -> Result<Cursor> {
        let call = &self.limited(call);
        call.during(|| self.read(|source| source.gather(collection, query, call)))
    }

    fn limited(&self, call: &CallContext) -> CallContext {
        Session::limited(self, call)
    }
}

impl<T: Transaction> Session<T> {
    /// Adds the reads of a query of the collection or view `name` to the read set.
    fn reads_of(&mut self, name: &str, query: &Query) -> Result<()> {
        let matches = Reads::Matches(&query.filter);
        match &query.view {
            None => self.reads(name, matches)?,
            Some(view) => self.reads_view(view, matches)?,
        }
        query.pipeline.collections().try_for_each(|name| self.reads(name, Reads::All))?;
        query.others.iter().try_for_each(|other| {
            self.reads_view(&other.definition, Reads::All)?;
            other.definition.reads().try_for_each(|name| self.reads(name, Reads::All))
        })
    }

    /// Adds a read through a view to the read set: of the view's definitions, and of the collection that it reads.
    fn reads_view(&mut self, view: &ResolvedView, what: Reads<'_>) -> Result<()> {
        view.names.iter().try_for_each(|name| self.reads(name, Reads::Nothing))?;
        self.reads(&view.collection, what)
    }

    /// Executes and counts a write of `subject`.
    fn measured<R: WriteOutcome>(
        &mut self,
        kind: OperationKind,
        subject: Subject<'_>,
        write: impl FnOnce(&mut Self) -> Result<R>,
    ) -> Result<R> {
        let observer = Arc::clone(self.memory().observer());
        let mut call = MeasuredCall::new(&observer, kind, subject.collection, self.budget());
        let result = call.within(|| {
            let outcome = write(self).map_err(|error| located(error, self.catalog()))?;
            self.check_budget().map(|()| outcome)
        });
        if let Ok(outcome) = &result {
            call.wrote(outcome.written());
            if outcome.has_refusals() {
                call.refused();
            }
        }
        if let Some(tally) = self.take_tally() {
            call.tallied(&tally);
        }
        call.end(subject);
        result
    }

    /// Executes and counts a change of the definition of `name`.
    fn defined<R: WriteOutcome>(&mut self, name: &str, write: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        self.measured(OperationKind::Definition, Subject::collection(name), write)
    }
}

impl<T: Transaction> Writer for Session<T> {
    fn catalog(&self) -> &Arc<Catalog> {
        Session::catalog(self)
    }

    fn confirm(&mut self) -> Result<Confirmed> {
        Session::confirm(self)
    }

    fn memory(&self) -> &Memory {
        Session::memory(self)
    }

    fn reading(&mut self, reads: ReadSet<'_>) -> Result<&dyn Reader> {
        self.begin_call()?;
        let recorded = match reads {
            ReadSet::Definition(name) => self.reads(name, Reads::Nothing),
            ReadSet::Key(name, key) => self.reads(name, Reads::Key(key)),
            ReadSet::Query(name, query) => self.reads_of(name, query),
            ReadSet::Collection(name) => self.reads(name, Reads::All),
        };
        recorded.map_err(|error| located(error, self.catalog()))?;
        Ok(self)
    }

    fn insert(
        &mut self,
        collection: &str,
        documents: &[&RawDocument],
        mode: InsertMode,
        call: &CallContext,
    ) -> Result<InsertOutcome> {
        self.measured(OperationKind::Insert, Subject::collection(collection), |session| {
            session.insert(collection, documents, mode, call)
        })
    }

    fn update(&mut self, collection: &str, request: &UpdateRequest, call: &CallContext) -> Result<UpdateOutcome> {
        let subject = Subject { collection: Some(collection), filter: Some(&request.query.filter) };
        self.measured(OperationKind::Update, subject, |session| session.update(collection, request, call))
    }

    fn delete(&mut self, collection: &str, request: &DeleteRequest, call: &CallContext) -> Result<DeleteOutcome> {
        let subject = Subject { collection: Some(collection), filter: Some(&request.query.filter) };
        self.measured(OperationKind::Delete, subject, |session| session.delete(collection, request, call))
    }

    fn put(
        &mut self,
        collection: &str,
        documents: &[&RawDocument],
        kind: PutKind,
        call: &CallContext,
    ) -> Result<PutOutcome> {
        self.measured(OperationKind::Upsert, Subject::collection(collection), |session| {
            session.put(collection, documents, kind, call)
        })
    }

    fn replace_all(&mut self, collection: &str, rows: &mut dyn Rows, call: &CallContext) -> Result<PutOutcome> {
        self.measured(OperationKind::Upsert, Subject::collection(collection), |session| {
            session.replace_all(collection, rows, call)
        })
    }

    fn put_rows(
        &mut self,
        collection: &str,
        rows: &mut dyn Rows,
        kind: PutKind,
        call: &CallContext,
    ) -> Result<PutOutcome> {
        self.measured(OperationKind::Upsert, Subject::collection(collection), |session| {
            session.put_rows(collection, rows, kind, call)
        })
    }

    fn bulk(
        &mut self,
        operations: &[(&str, BulkOperation)],
        mode: InsertMode,
        call: &CallContext,
    ) -> Result<BulkOutcome> {
        let subject = match operations {
            [(first, _), others @ ..] if others.iter().all(|(collection, _)| collection == first) => {
                Subject::collection(first)
            }
            _ => Subject::default(),
        };
        self.measured(OperationKind::BulkWrite, subject, |session| session.bulk(operations, mode, call))
    }

    fn create_collection(&mut self, name: &str, spec: &CollectionSpec) -> Result<Created> {
        self.defined(name, |session| session.create_collection(name, spec))
    }

    fn create_view(&mut self, name: &str, spec: &ViewSpec) -> Result<Created> {
        self.defined(name, |session| session.create_view(name, spec))
    }

    fn set_view(&mut self, name: &str, spec: &ViewSpec) -> Result<()> {
        self.defined(name, |session| session.set_view(name, spec))
    }

    fn set_validator(&mut self, collection: &str, spec: Option<&ValidatorSpec>) -> Result<()> {
        self.defined(collection, |session| session.set_validator(collection, spec))
    }

    fn set_visibility(&mut self, collection: &str, index: &str, visibility: Visibility) -> Result<Visibility> {
        self.defined(collection, |session| session.set_visibility(collection, index, visibility))
    }

    fn set_expiry(&mut self, collection: &str, index: &str, seconds: i64) -> Result<Option<u32>> {
        self.defined(collection, |session| session.set_expiry(collection, index, seconds))
    }

    fn expire(&mut self, collection: &str, index: &str, now_millis: i64, limit: u64) -> Result<ExpireOutcome> {
        self.measured(OperationKind::Delete, Subject::collection(collection), |session| {
            session.expire(collection, index, now_millis, limit, &CallContext::default())
        })
    }

    fn set_change_log(&mut self, limits: Option<ChangeLog>) -> Result<()> {
        self.measured(OperationKind::Definition, Subject::default(), |session| session.set_change_log(limits))
    }

    fn trim_change_log(&mut self, now_millis: i64) -> Result<bool> {
        Session::trim_change_log(self, now_millis)
    }

    fn set_images(&mut self, collection: &str, images: Images) -> Result<()> {
        self.defined(collection, |session| session.set_images(collection, images))
    }

    fn dropped_database(&mut self, database: &str) -> Result<()> {
        Session::dropped_database(self, database)
    }

    fn rename_collection(&mut self, from: &str, to: &str, target: RenameTarget) -> Result<()> {
        self.defined(from, |session| session.rename_collection(from, to, target))
    }

    fn drop_collection(&mut self, name: &str) -> Result<bool> {
        self.defined(name, |session| session.drop_collection(name))
    }

    fn create_index(
        &mut self,
        collection: &str,
        spec: &IndexSpec,
        progress: BuildProgress<'_>,
        call: &CallContext,
    ) -> Result<(String, Created)> {
        self.measured(OperationKind::IndexBuild, Subject::collection(collection), |session| {
            session.create_index(collection, spec, progress, call)
        })
    }

    fn drop_index(&mut self, collection: &str, index: &str) -> Result<bool> {
        self.defined(collection, |session| session.drop_index(collection, index))
    }

    fn begin_build(&mut self, collection: &str, spec: &IndexSpec, steps: BuildSteps) -> Result<BuildStart> {
        self.measured(OperationKind::IndexBuild, Subject::collection(collection), |session| {
            session.begin_build(collection, spec, steps)
        })
    }

    fn build_round(
        &mut self,
        collection: &str,
        keyspace: Keyspace,
        limit: usize,
        call: &CallContext,
    ) -> Result<BuildRound> {
        self.measured(OperationKind::IndexBuild, Subject::collection(collection), |session| {
            session.build_round(keyspace, limit, call)
        })
    }

    fn finish_builds(&mut self, collection: &str, keyspaces: &[Keyspace]) -> Result<bool> {
        self.measured(OperationKind::IndexBuild, Subject::collection(collection), |session| {
            session.finish_builds(keyspaces)
        })
    }

    fn abandon_build(&mut self, collection: &str, keyspace: Keyspace) -> Result<()> {
        self.defined(collection, |session| session.abandon_build(keyspace))
    }

    fn redefines(&self) -> Vec<Box<str>> {
        Session::redefines(self)
    }

    fn end(&mut self, reason: &str) {
        Session::end(self, reason);
    }

    fn commit(self: Box<Self>, durability: Durability) -> Result<AfterCommit> {
        let catalog = Arc::clone(Session::catalog(&self));
        let observer = Arc::clone(self.memory().observer());
        let mut call = MeasuredCall::new(&observer, OperationKind::Commit, None, self.budget());
        let result = call.within(|| Session::commit(*self, durability).map_err(|error| located(error, &catalog)));
        call.end(Subject::default());
        result
    }
}

/// Adds the names of collection and index to the error of a conflict or of damage.
pub(super) fn located(error: Error, catalog: &Catalog) -> Error {
    error.located(|keyspace, key| key_place(catalog, keyspace, key))
}
