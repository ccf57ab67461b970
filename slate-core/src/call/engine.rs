//! The traits that erase the store's type. They have no type parameters; [`Backend`](super::backend::Backend) implements
//! them for any store.

use std::{ops::ControlFlow, path::Path, sync::Arc, time::Duration};

use bson::RawDocument;
use slate_query::raw::Doc;
use slate_store::{BackupProgress, Capabilities, Checked, Damage, Durability, Keyspace, Size, SizeDetail};

use super::measured::Cursor;
use crate::{
    ChangeLog, CollectionStats, ExplainVerbosity, RenameTarget, Result,
    call_context::CallContext,
    catalog::{Catalog, CatalogCheck, CollectionInfo, Namespace},
    changes::{CommitTime, Event, Images, LogCounts, Position, Wakers},
    commit::Announced,
    exec::Rows,
    metrics::{Metrics, Observer, PointRead},
    plan::{Explained, Query},
    spill::Memory,
    verify::VerifyRun,
    write::{
        AfterCommit, BeginOptions, BuildProgress, BuildRound, BuildStart, BuildSteps, BulkOperation, BulkOutcome,
        CollectionSpec, Confirmed, Created, DeleteOutcome, DeleteRequest, ExpireOutcome, IndexSpec, InsertMode,
        InsertOutcome, PutKind, PutOutcome, UpdateOutcome, UpdateRequest, ValidatorSpec, ViewSpec, Visibility,
    },
};

/// An open database, without the type of its store.
pub(crate) trait Engine: Send + Sync {
    /// Returns the counters of the database's work.
    fn observer(&self) -> &Arc<Observer>;
    /// Returns the memory that the database's calls share for rows.
    fn memory(&self) -> &Memory;
    /// Returns the database's metrics.
    fn metrics(&self) -> Metrics;
    fn capabilities(&self) -> Capabilities;
    /// Returns whether [`try_snapshot`](Self::try_snapshot) would return a reader now.
    #[cfg(feature = "async")]
    fn tries_queries(&self) -> bool;
    /// Returns a reader of the latest commit.
    fn snapshot(&self) -> Result<SharedReader>;
    /// Returns a reader of the latest commit. With a check, the caller must discard everything that it reads unless [`confirm`](Self::confirm)
    /// returns true.
    fn snapshot_ahead(&self) -> Result<(SharedReader, Option<CatalogCheck>)>;
    /// Returns whether the reader has the current catalog.
    fn confirm(&self, check: CatalogCheck) -> Result<bool>;
    /// Returns a reader of the latest commit whose short reads do not wait for a device, a network or another thread;
    /// `None` if the store has none now.
    fn try_snapshot(&self) -> Result<Option<SharedReader>>;
    /// Calls `visitor` with a record of the latest commit, if it exists.
    fn get(&self, collection: &str, key: &[u8], id: IdMatch, visitor: RecordVisitor<'_>) -> Result<PointRead>;
    /// Like [`get`](Self::get), but postpones a read that would have to wait.
    fn try_get(&self, collection: &str, key: &[u8], id: IdMatch, visitor: RecordVisitor<'_>) -> Result<PointRead>;
    /// Returns the wakers of the streams that wait for commits.
    fn wakers(&self) -> &Arc<Wakers>;
    fn begin(&self, options: &BeginOptions) -> Result<Box<dyn Writer>>;
    /// Begins a transaction that may have an outdated catalog: the caller must call [`Writer::confirm`] before it uses a result.
    fn begin_ahead(&self, options: &BeginOptions) -> Result<Box<dyn Writer>>;
    /// Announces changes of definitions, for which the writers of all processes make way.
    fn announce(&self, changes: &[Announced], wait: Duration) -> Result<()>;
    /// Withdraws announcements.
    fn withdraw(&self, changes: &[Announced], wait: Duration) -> Result<()>;
    /// Begins a transaction; `None` if it or its commit would have to wait for a device, a network or another thread.
    fn try_begin(&self, options: &BeginOptions) -> Result<Option<Box<dyn Writer>>>;
    /// Executes the work after a commit. The commit has succeeded; a failure here postpones the work.
    fn after_commit(&self, work: &AfterCommit, wait: Duration);
    /// Gathers a collection's statistics from all its keys. Does nothing if there is no such collection.
    fn analyze(&self, collection: &str, wait: Duration) -> Result<()>;
    fn flush(&self) -> Result<()>;
    fn backup(&self, to: &Path, progress: BackupProgress<'_>) -> Result<()>;
    /// Returns space of deleted data to the file system. `wait` bounds the time to wait for a store on a network.
    fn compact(&self, wait: Duration) -> Result<()>;
    /// Compacts in steps, and calls `progress` after each. Returns `Break` if `progress` did.
    fn compact_while(&self, wait: Duration, progress: BackupProgress<'_>) -> Result<ControlFlow<()>>;
    /// Removes versions that only snapshots older than `keep` read.
    fn collect_garbage(&self, keep: Duration) -> Result<()>;
    fn size(&self, detail: SizeDetail) -> Result<Size>;
    /// Verifies the checksums of the stored data.
    fn check(&self, visitor: &mut dyn FnMut(Checked) -> ControlFlow<()>) -> Result<()>;
}

/// Receives the document that a read by key finds.
pub(crate) type RecordVisitor<'v> = &'v mut dyn FnMut(Doc<'_>) -> Result<()>;

/// How a read by key finds its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdMatch {
    /// The record with exactly this key.
    Key,
    /// The record whose `_id` equals the value in a filter. If strings are compared by a collation, only a query can find it.
    Filter,
}

/// A reader of a snapshot.
pub(crate) type SharedReader = Arc<dyn Reader + Send + Sync>;

/// Reads of one commit, or of a transaction's snapshot and its own writes. A collection that does not exist is read as empty.
pub(crate) trait Reader {
    fn catalog(&self) -> &Arc<Catalog>;
    /// Returns the memory limit of the database's calls, and their folder for temporary files.
    fn memory(&self) -> &Memory;
    /// Runs a query of `collection`. A snapshot's rows are read as they are consumed; a transaction reads all of them at
    /// once, so that it can write while its caller iterates.
    fn find(&self, collection: &CollectionInfo, query: &Query, call: &CallContext) -> Result<Cursor>;
    /// Calls `visitor` with the document stored under `key`, if it exists.
    fn get(&self, collection: &str, key: &[u8], visitor: RecordVisitor<'_>) -> Result<PointRead>;
    /// Plans a query, and executes the plan if `verbosity` requires it.
    fn explain(
        &self,
        collection: &CollectionInfo,
        query: &Query,
        verbosity: ExplainVerbosity,
        call: &CallContext,
    ) -> Result<Explained>;
    /// Calls `visitor` with the logged changes after a position, until it breaks. Returns where it broke; `None` at the end of the log, or without a
    /// log.
    fn changes(&self, after: Position, visitor: ChangeVisitor<'_>) -> Result<Option<Position>>;
    /// Returns the position after the last logged change.
    fn last_change(&self) -> Result<Position>;
    /// Returns the position before the first change committed at this time or later; `None` if it may have been deleted from the log, or without a
    /// log.
    fn change_at(&self, stamp: u64) -> Result<Option<Position>>;
    /// Returns the position of the last change that was deleted from the log, or the position before all changes.
    fn trimmed_changes(&self) -> Result<Position>;
    /// Returns the size of the log; `None` if changes are not logged.
    fn change_counts(&self) -> Result<Option<LogCounts>>;
    /// Counts documents, index entries and their bytes.
    fn stats(&self, collection: &str, call: &CallContext) -> Result<CollectionStats>;
    /// Verifies documents and index entries.
    fn verify(&self, collection: &str, run: &mut VerifyRun<'_>) -> Result<()>;
    /// Calls `visitor` with the documents of a collection that are valid and not in one of the damaged parts.
    fn salvage(
        &self,
        collection: &str,
        damages: &[Damage],
        run: &mut VerifyRun<'_>,
        visitor: &mut dyn FnMut(Doc<'_>) -> Result<()>,
    ) -> Result<()>;
}

/// Receives the logged changes one after the other; `Break` ends the read.
pub(crate) type ChangeVisitor<'v> = &'v mut dyn FnMut(Position, CommitTime, &Event<'_>) -> Result<ControlFlow<()>>;

/// What a read in a transaction depends on: a serializable transaction conflicts if it changes.
#[derive(Clone, Copy)]
pub(crate) enum ReadSet<'r> {
    /// The definition of the collection or view.
    Definition(&'r str),
    /// The record with this key.
    Key(&'r str, &'r [u8]),
    /// The documents that a query of the collection or view reads.
    Query(&'r str, &'r Query),
    /// Any record of the collection.
    Collection(&'r str),
}

/// An open write transaction.
pub(crate) trait Writer: Send {
    fn catalog(&self) -> &Arc<Catalog>;
    /// Returns whether the calls so far have used the current catalog, and whether the transaction makes way for an announced change. Unless `Yes`,
    /// the caller must discard their results.
    fn confirm(&mut self) -> Result<Confirmed>;
    /// Returns the memory limit of the database's calls, and their folder for temporary files.
    fn memory(&self) -> &Memory;
    /// Adds what a read depends on to the transaction's read set, and returns the reader that executes the read.
    fn reading(&mut self, reads: ReadSet<'_>) -> Result<&dyn Reader>;
    fn insert(
        &mut self,
        collection: &str,
        documents: &[&RawDocument],
        mode: InsertMode,
        call: &CallContext,
    ) -> Result<InsertOutcome>;
    fn update(&mut self, collection: &str, request: &UpdateRequest, call: &CallContext) -> Result<UpdateOutcome>;
    fn delete(&mut self, collection: &str, request: &DeleteRequest, call: &CallContext) -> Result<DeleteOutcome>;
    /// Upserts or merges documents by `_id`.
    fn put(
        &mut self,
        collection: &str,
        documents: &[&RawDocument],
        kind: PutKind,
        call: &CallContext,
    ) -> Result<PutOutcome>;
    /// Replaces all documents of a collection by `rows`, whose number is not limited by memory.
    fn replace_all(&mut self, collection: &str, rows: &mut dyn Rows, call: &CallContext) -> Result<PutOutcome>;
    /// Upserts or merges `rows` by `_id`; their number is not limited by memory.
    fn put_rows(
        &mut self,
        collection: &str,
        rows: &mut dyn Rows,
        kind: PutKind,
        call: &CallContext,
    ) -> Result<PutOutcome>;
    fn bulk(
        &mut self,
        operations: &[(&str, BulkOperation)],
        mode: InsertMode,
        call: &CallContext,
    ) -> Result<BulkOutcome>;
    fn create_collection(&mut self, name: &str, spec: &CollectionSpec) -> Result<Created>;
    fn create_view(&mut self, name: &str, spec: &ViewSpec) -> Result<Created>;
    /// Replaces a view's definition, except its collation.
    fn set_view(&mut self, name: &str, spec: &ViewSpec) -> Result<()>;
    /// Replaces or removes a collection's validator.
    fn set_validator(&mut self, collection: &str, spec: Option<&ValidatorSpec>) -> Result<()>;
    /// Hides or shows an index. Returns the previous visibility.
    fn set_visibility(&mut self, collection: &str, index: &str, visibility: Visibility) -> Result<Visibility>;
    /// Sets `expireAfterSeconds` of an index on one field. Returns the previous value; `None` if it was no TTL index.
    fn set_expiry(&mut self, collection: &str, index: &str, seconds: i64) -> Result<Option<u32>>;
    /// Deletes at most `limit` documents that have expired by a TTL index.
    fn expire(&mut self, collection: &str, index: &str, now_millis: i64, limit: u64) -> Result<ExpireOutcome>;
    /// Begins the log of changes, or changes its limits; `None` ends it.
    fn set_change_log(&mut self, limits: Option<ChangeLog>) -> Result<()>;
    /// Trims the log to its limits. Returns whether it deleted anything.
    fn trim_change_log(&mut self, now_millis: i64) -> Result<bool>;
    /// Sets whether the log stores the documents before and after each change for streams.
    fn set_images(&mut self, collection: &str, images: Images) -> Result<()>;
    /// Logs that a database was dropped.
    fn dropped_database(&mut self, database: &str) -> Result<()>;
    fn rename_collection(&mut self, from: &str, to: &str, target: RenameTarget) -> Result<()>;
    /// Returns whether the collection existed.
    fn drop_collection(&mut self, name: &str) -> Result<bool>;
    /// Creates an index in this transaction. Returns its name, and whether it is new.
    fn create_index(
        &mut self,
        collection: &str,
        spec: &IndexSpec,
        progress: BuildProgress<'_>,
        call: &CallContext,
    ) -> Result<(String, Created)>;
    /// Returns whether the index existed.
    fn drop_index(&mut self, collection: &str, index: &str) -> Result<bool>;
    /// Declares an index that later rounds fill.
    fn begin_build(&mut self, collection: &str, spec: &IndexSpec, steps: BuildSteps) -> Result<BuildStart>;
    /// Fills a declared index from at most `limit` documents.
    fn build_round(
        &mut self,
        collection: &str,
        keyspace: Keyspace,
        limit: usize,
        call: &CallContext,
    ) -> Result<BuildRound>;
    /// Makes filled indexes available to queries. Returns false, and changes nothing, if one of them was dropped in the meantime.
    fn finish_builds(&mut self, collection: &str, keyspaces: &[Keyspace]) -> Result<bool>;
    /// Drops a declared index, unless it is ready.
    fn abandon_build(&mut self, collection: &str, keyspace: Keyspace) -> Result<()>;
    /// Returns the collections whose definitions the transaction changes: it conflicts with every writer of them.
    fn redefines(&self) -> Vec<Box<str>>;
    /// Ends the transaction: every later call fails with `reason`.
    fn end(&mut self, reason: &str);
    /// Commits; returns the work to do after the commit.
    fn commit(self: Box<Self>, durability: Durability) -> Result<AfterCommit>;
}

impl dyn Writer + '_ {
    /// Reads the definition of the collection or view; `None` if it does not exist.
    pub(crate) fn definition(&mut self, name: &str) -> Result<Option<Namespace>> {
        Ok(self.reading(ReadSet::Definition(name))?.catalog().namespace(name))
    }

    /// Reads the definition of a collection; `None` if it does not exist.
    ///
    /// # Errors
    /// `CommandNotSupportedOnView` (166) for a view.
    pub(crate) fn collection(&mut self, name: &str) -> Result<Option<Arc<CollectionInfo>>> {
        self.definition(name)?.map(Namespace::into_collection).transpose()
    }
}
