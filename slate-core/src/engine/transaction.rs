use std::sync::Arc;

use slate_store::{Durability, Transaction};

use super::{Writer, read::Source};
use crate::{
    Error, Result,
    api::options::ExplainVerbosity,
    catalog::{Catalog, ResolvedView},
    metrics::{Call, OperationKind},
    operation::{
        read_op::{ReadOp, ReadOutput},
        write_op::{WriteOp, WriteOptions, WriteOutput},
    },
    plan::Query,
    write::{AfterCommit, Created, Reads, Session, Visibility},
};

impl<T: Transaction> Writer for Session<T> {
    fn read(&mut self, collection: &str, op: ReadOp<'_, '_>) -> Result<ReadOutput> {
        let result = self.execute_read(collection, op);
        result.map_err(|error| located(error, self.catalog()))
    }

    fn write(&mut self, op: WriteOp<'_>) -> Result<WriteOutput> {
        let observer = Arc::clone(self.memory().observer());
        let subject = op.subject();
        let mut call = Call::new(&observer, kind(&op), subject.collection);
        let result = call.within(|| {
            let output = self.execute_write(op).map_err(|error| located(error, self.catalog()))?;
            self.check_short().map(|()| output)
        });
        if let Ok(output) = &result {
            call.wrote(output.written());
            if output.has_refusals() {
                call.refused();
            }
        }
        if let Some(tally) = self.take_tally() {
            call.tallied(&tally);
        }
        call.end(subject);
        result
    }

    fn end(&mut self, reason: &str) {
        Session::end(self, reason);
    }

    fn commit(self: Box<Self>, durability: Durability) -> Result<AfterCommit> {
        let catalog = Arc::clone(self.catalog());
        let observer = Arc::clone(self.memory().observer());
        Call::measure(&observer, OperationKind::Commit, None, || {
            Session::commit(*self, durability).map_err(|error| located(error, &catalog))
        })
    }
}

/// Returns the kind as which a write is counted.
fn kind(op: &WriteOp<'_>) -> OperationKind {
    match op {
        WriteOp::Insert { .. } => OperationKind::Insert,
        WriteOp::Update { .. } => OperationKind::Update,
        WriteOp::Delete { .. } => OperationKind::Delete,
        WriteOp::Put { .. } => OperationKind::Upsert,
        WriteOp::Bulk { .. } => OperationKind::BulkWrite,
        WriteOp::CreateIndex { .. } | WriteOp::BeginBuild { .. } | WriteOp::BuildRound { .. } => {
            OperationKind::IndexBuild
        }
        WriteOp::With(_, op) => kind(op),
        WriteOp::CreateCollection { .. }
        | WriteOp::RenameCollection { .. }
        | WriteOp::DropCollection(_)
        | WriteOp::DropIndex { .. }
        | WriteOp::CreateView { .. }
        | WriteOp::SetView { .. }
        | WriteOp::SetValidator { .. }
        | WriteOp::SetVisibility { .. }
        | WriteOp::AbandonBuild { .. } => OperationKind::Definition,
    }
}

/// Adds the collection and the index to a conflict.
fn located(error: Error, catalog: &Catalog) -> Error {
    error.located(|keyspace, key| catalog.place(keyspace, key))
}

impl<T: Transaction> Session<T> {
    /// Executes a read that is part of the read set.
    fn execute(&self, collection: &str, op: ReadOp<'_, '_>) -> Result<ReadOutput> {
        Source { view: &self.view(), catalog: self.catalog(), memory: self.memory() }.read(collection, op)
    }

    fn execute_read(&mut self, collection: &str, op: ReadOp<'_, '_>) -> Result<ReadOutput> {
        self.check_open()?;
        match op {
            ReadOp::Find { query, interrupt } => {
                self.reads_of(collection, query)?;
                let interrupt = &self.limited(interrupt);
                self.execute(collection, ReadOp::Find { query, interrupt })
            }
            ReadOp::Explain { query, verbosity, interrupt } => {
                // Execution statistics depend on the documents; the plan alone does not.
                if verbosity == ExplainVerbosity::ExecutionStats {
                    self.reads_of(collection, query)?;
                }
                let interrupt = &self.limited(interrupt);
                let op = ReadOp::Explain { query, verbosity, interrupt };
                self.execute(collection, op)
            }
            op => {
                let reads = match &op {
                    ReadOp::Definition => Reads::Nothing,
                    ReadOp::Get { key, .. } => Reads::Key(key),
                    _ => Reads::All,
                };
                self.reads(collection, reads)?;
                self.execute(collection, op)
            }
        }
    }

    /// Records what a query of the collection or view `name` reads.
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

    /// Records a read through a view: of the view's definition, and of the collection that it reads.
    fn reads_view(&mut self, view: &ResolvedView, what: Reads<'_>) -> Result<()> {
        view.names.iter().try_for_each(|name| self.reads(name, Reads::Nothing))?;
        self.reads(&view.collection, what)
    }

    fn execute_write(&mut self, op: WriteOp<'_>) -> Result<WriteOutput> {
        Ok(match op {
            WriteOp::Insert { collection, documents, mode, interrupt } => {
                self.insert(collection, documents, mode, interrupt)?.into()
            }
            WriteOp::Update { collection, request, interrupt } => self.update(collection, request, interrupt)?.into(),
            WriteOp::Delete { collection, request, interrupt } => self.delete(collection, request, interrupt)?.into(),
            WriteOp::Put { collection, documents, kind, interrupt } => {
                self.put(collection, documents, kind, interrupt)?.into()
            }
            WriteOp::Bulk { operations, mode, interrupt } => self.bulk(operations, mode, interrupt)?.into(),
            WriteOp::CreateCollection { collection, spec } => {
                (self.create_collection(collection, spec)? == Created::New).into()
            }
            WriteOp::CreateView { name, spec } => (self.create_view(name, spec)? == Created::New).into(),
            WriteOp::SetView { name, spec } => self.set_view(name, spec)?.into(),
            WriteOp::SetVisibility { collection, index, visibility } => {
                (self.set_visibility(collection, index, visibility)? == Visibility::Hidden).into()
            }
            WriteOp::SetValidator { collection, spec } => self.set_validator(collection, spec)?.into(),
            WriteOp::With(options, op) => {
                self.options = options;
                let result = self.execute_write(*op);
                self.options = WriteOptions::default();
                result?
            }
            WriteOp::RenameCollection { from, to, target } => self.rename_collection(from, to, target)?.into(),
            WriteOp::DropCollection(collection) => self.drop_collection(collection)?.into(),
            WriteOp::CreateIndex { collection, spec, interrupt, progress } => {
                let (name, created) = self.create_index(collection, spec, interrupt, progress)?;
                (name, created == Created::New).into()
            }
            WriteOp::DropIndex { collection, index } => self.drop_index(collection, index)?.into(),
            WriteOp::BeginBuild { collection, spec } => self.begin_build(collection, spec)?.into(),
            WriteOp::BuildRound { keyspace, limit, interrupt, .. } => {
                self.build_round(keyspace, limit, interrupt)?.into()
            }
            WriteOp::AbandonBuild { keyspace, .. } => self.abandon_build(keyspace)?.into(),
        })
    }
}
