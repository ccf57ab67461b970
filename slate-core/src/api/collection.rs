use std::{any::Any, borrow::Cow, marker::PhantomData, ops::Deref, sync::Arc, time::Duration};

use bson::{Bson, Document, RawDocument, RawDocumentBuf, doc};
use serde::{Serialize, de::DeserializeOwned};
use slate_query::raw::{Doc, with_value};

use crate::{
    Aggregate, BulkWrite, CancelToken, CollectionStats, Count, Delete, Distinct, Error, Find, FindOne,
    FindOneAndDelete, FindOneAndUpdate, IndexDescription, InsertMany, IntoDocument, IntoUpdate, Result, Update,
    UpsertManyResult, Verify, Watch, WriteOperation,
    call::{ReadSet, Request, Scope, ScopedRequest},
    call_context::CallContext,
    catalog::Namespace,
    changes::Watched,
    document::{As, Converted, borrowed, each_to_raw, from_raw, to_raw},
    entry::record_key,
    exec::Target,
    interrupt::CallLimits,
    metrics::PointRead,
    namespace,
    write::{InsertMode, PutKind, UpdateKind},
};

/// The reading methods of a collection: [`Snapshot::collection`](crate::Snapshot::collection) returns it, and every [`Collection`] dereferences to
/// it.
pub struct ReadCollection<T> {
    pub(crate) scope: Scope,
    pub(crate) name: Arc<str>,
    pub(super) limits: CallLimits,
    documents: As<T>,
}

/// A collection of documents that are read and written as `T`.
///
/// A handle: cheap to clone, share and send. Through a [`Transaction`](crate::Transaction) its calls belong to the
/// transaction; otherwise each read sees the latest commit and each write is its own transaction.
pub struct Collection<T> {
    read: ReadCollection<T>,
}

impl<T> ReadCollection<T> {
    pub(crate) fn new(scope: Scope, name: impl Into<Arc<str>>, limits: CallLimits) -> Self {
        Self { scope, name: name.into(), limits, documents: PhantomData }
    }

    /// Returns the collection's name within its database.
    pub fn name(&self) -> &str {
        namespace::split(&self.name).1
    }

    /// Returns the name of the collection's database; see [`Database::database`](crate::Database::database).
    pub fn database_name(&self) -> &str {
        namespace::split(&self.name).0
    }

    /// Returns the same collection with a deadline for each call: it fails with [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) if it does
    /// not end within this time from its beginning. A write then has changed nothing. The time includes waiting for other writers, and for a cursor
    /// the time until its last row is read. A lookup of a single key that has begun is not interrupted. A builder's own `deadline` replaces it.
    ///
    /// ```
    /// # let db = slate_core::Database::open("memory:")?;
    /// use std::time::Duration;
    /// use bson::{doc, rawdoc};
    ///
    /// let users = db.collection("users").with_deadline(Duration::from_secs(2));
    /// users.insert_one(&rawdoc! { "_id": 1 })?;
    /// assert_eq!(users.count_documents(doc! {}).run()?, 1);
    /// # Ok::<(), slate_core::Error>(())
    /// ```
    #[must_use]
    pub fn with_deadline(&self, within: Duration) -> Self {
        let mut limited = self.clone();
        limited.limits.deadline(within);
        limited
    }

    /// Returns the same collection with a cancel token for each call: it fails with
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) when the token is cancelled. A builder's own `cancel` replaces it.
    #[must_use]
    pub fn with_cancel(&self, token: CancelToken) -> Self {
        let mut limited = self.clone();
        limited.limits.cancel(token);
        limited
    }

    /// Returns the same collection for an async call: its deadline counts from now, although it is executed later.
    #[cfg(feature = "async")]
    pub(crate) fn begun(&self) -> Self {
        Self { limits: self.limits.begun(), ..self.clone() }
    }

    /// Returns the same collection for async calls that must not wait, with this budget. `None` in a scope whose calls always wait.
    #[cfg(feature = "async")]
    pub(crate) fn within_budget(&self, budget: &crate::interrupt::WaitBudget) -> Option<Self> {
        self.scope.tries_calls().then(|| Self { limits: self.limits.within(budget), ..self.clone() })
    }

    /// Returns the context of a call that begins now.
    pub(super) fn begin(&self) -> CallContext {
        CallContext::begin(&self.limits)
    }

    /// Returns a request whose call begins now.
    fn call(&self, request: Request) -> ScopedRequest {
        ScopedRequest::new(self.scope.clone(), &self.name, &self.limits, request)
    }

    /// Finds the documents that match `filter`, in MongoDB's query language. Nothing is read until [`Find::run`],
    /// [`Find::cursor`], [`Find::first`] or another method that executes the query.
    ///
    /// ```
    /// # let db = slate_core::Database::open("memory:")?;
    /// use bson::{RawDocumentBuf, doc};
    ///
    /// let users = db.collection::<RawDocumentBuf>("users");
    /// for user in users.find(doc! { "age": { "$gte": 21 } }).sort(doc! { "age": 1 }).limit(50).run()? {
    ///     println!("{:?}", user?);
    /// }
    /// # Ok::<(), slate_core::Error>(())
    /// ```
    pub fn find(&self, filter: impl IntoDocument) -> Find<T> {
        Find::new(self.call(Request::new(filter)))
    }

    /// Runs an aggregation: the stages of `pipeline`, in MongoDB's language, one after the other. `docs/aggregation.md`
    /// lists the stages. Nothing is read until [`Aggregate::run`], [`Aggregate::cursor`] or another method that executes
    /// the pipeline.
    ///
    /// ```
    /// # let db = slate_core::Database::open("memory:")?;
    /// use bson::{doc, rawdoc};
    ///
    /// let films = db.collection("films");
    /// films.insert_many(&[
    ///     rawdoc! { "title": "Stalker", "genres": ["drama", "science fiction"], "year": 1979 },
    ///     rawdoc! { "title": "Solaris", "genres": ["science fiction"], "year": 1972 },
    /// ]).run()?;
    /// let pipeline = [
    ///     doc! { "$match": { "year": { "$gte": 1970 } } },
    ///     doc! { "$unwind": "$genres" },
    ///     doc! { "$match": { "genres": "science fiction" } },
    ///     doc! { "$count": "films" },
    /// ];
    /// assert_eq!(films.aggregate(pipeline).first()?, Some(doc! { "films": 2 }));
    /// # Ok::<(), slate_core::Error>(())
    /// ```
    pub fn aggregate(&self, pipeline: impl IntoIterator<Item = impl IntoDocument>) -> Aggregate<Document> {
        Aggregate::new(self.call(Request::default()), self.database_name(), pipeline)
    }

    /// Counts the documents that match `filter`. For the number of all documents without reading them, see
    /// [`ReadCollection::estimated_document_count`].
    pub fn count_documents(&self, filter: impl IntoDocument) -> Count {
        self.find(filter).count()
    }

    /// Returns the number of documents in the collection. It is exact.
    ///
    /// Cost: in memory, independent of the collection's size; on other stores, a scan of the collection's keys.
    ///
    /// # Errors
    /// Fails if the storage fails.
    pub fn estimated_document_count(&self) -> Result<u64> {
        self.count_documents(RawDocumentBuf::new()).run()
    }

    /// Returns the distinct values at `path` of the documents that match `filter`, in BSON's order. Each element of an array is a value.
    pub fn distinct(&self, path: &str, filter: impl IntoDocument) -> Distinct {
        self.find(filter).distinct(path)
    }

    /// Returns the collection's indexes in the order of their creation, without the one on `_id`, which always exists.
    /// Indexes that are being built come last.
    ///
    /// # Errors
    /// Code 166 for a view; fails if the storage fails.
    pub fn list_indexes(&self) -> Result<Vec<IndexDescription>> {
        let collection = self.definition()?.map(Namespace::into_collection).transpose()?;
        Ok(collection.map_or_else(Vec::new, |collection| IndexDescription::all(&collection)))
    }

    /// Counts the collection's documents, index entries and their bytes. For a collection that does not exist the counts are 0.
    ///
    /// Cost: a scan of all records and entries.
    ///
    /// # Errors
    /// Code 166 for a view; fails if the storage fails.
    pub fn stats(&self) -> Result<CollectionStats> {
        let call = &self.begin();
        self.scope.read(ReadSet::Collection(&self.name), call, |reader| reader.stats(&self.name, call))
    }

    /// Verifies the collection: every record is a valid document with a correct field table under the key of its `_id`, and
    /// every index has exactly the entries that the documents require.
    ///
    /// ```
    /// # let db = slate_core::Database::open("memory:")?;
    /// # let users = db.collection::<bson::RawDocumentBuf>("users");
    /// let report = users.verify().run()?;
    /// assert!(report.is_sound(), "{:?}", report.findings);
    /// # Ok::<(), slate_core::Error>(())
    /// ```
    pub fn verify(&self) -> Verify<'static> {
        Verify::collection(self.scope.clone(), &self.name, self.begin())
    }

    fn definition(&self) -> Result<Option<Namespace>> {
        let call = &self.begin();
        call.check()?;
        self.scope.definition(&self.name, call)
    }

    /// Returns whether a collection or a view has this name. The first write to a collection creates it.
    ///
    /// # Errors
    /// Fails if the storage fails.
    pub fn exists(&self) -> Result<bool> {
        Ok(self.definition()?.is_some())
    }
}

impl<T: DeserializeOwned + Any> ReadCollection<T> {
    /// Finds one document that matches `filter`: the first in the order of [`FindOne::sort`]. Without a sort it is any
    /// of the matching documents, depending on the plan. Nothing is read until [`FindOne::run`].
    ///
    /// ```
    /// # let db = slate_core::Database::open("memory:")?;
    /// use bson::{doc, rawdoc};
    ///
    /// let users = db.collection("users");
    /// users.insert_many(&[rawdoc! { "name": "Ada", "age": 36 }, rawdoc! { "name": "Bob", "age": 41 }]).run()?;
    /// let oldest = users.find_one(doc! {}).sort(doc! { "age": -1 }).projection(doc! { "_id": 0, "name": 1 }).run()?;
    /// assert_eq!(oldest, Some(rawdoc! { "name": "Bob" }));
    /// # Ok::<(), slate_core::Error>(())
    /// ```
    ///
    /// Cost: as a find with the limit 1. A sort that no index provides reads every match.
    pub fn find_one(&self, filter: impl IntoDocument) -> FindOne<T> {
        FindOne::new(self.call(Request::new(filter)))
    }

    /// Returns the document with this `_id`. Cost: one key lookup. To read a part of the document, or with a deadline,
    /// use [`find_one`](ReadCollection::find_one) and the filter `{ _id: … }`, which costs the same lookup and little
    /// more.
    ///
    /// # Errors
    /// Fails as [`Find::run`] does. A value that no `_id` can have, such as an array, finds nothing, as in a filter.
    pub fn find_by_id(&self, id: impl Into<Bson>) -> Result<Option<T>> {
        self.limits.check()?;
        let id = id.into();
        let key = match with_value(&id, record_key) {
            Ok(key) => key,
            // No document has this `_id`.
            Err(_) => return self.find_one(doc! { "_id": { "$eq": id } }).run(),
        };
        let mut found = None;
        let visitor = &mut |document: Doc<'_>| {
            found = Some(from_raw(&self.name, document)?);
            Ok(())
        };
        match self.scope.get(&self.name, &key, visitor, &self.limits)? {
            PointRead::NeedsQuery => self.find_one(doc! { "_id": { "$eq": id } }).run(),
            PointRead::Found(_) | PointRead::Missing | PointRead::Postponed => Ok(found),
        }
    }
}

impl<T> Collection<T> {
    pub(crate) fn new(scope: Scope, name: impl Into<Arc<str>>, limits: CallLimits) -> Self {
        Self { read: ReadCollection::new(scope, name, limits) }
    }

    /// Returns the same collection with a deadline for each call; see [`ReadCollection::with_deadline`].
    #[must_use]
    pub fn with_deadline(&self, within: Duration) -> Self {
        Self { read: self.read.with_deadline(within) }
    }

    /// Returns the same collection with a cancel token for each call; see [`ReadCollection::with_cancel`].
    #[must_use]
    pub fn with_cancel(&self, token: CancelToken) -> Self {
        Self { read: self.read.with_cancel(token) }
    }

    /// Returns the same collection for an async call: its deadline counts from now, although it is executed later.
    #[cfg(feature = "async")]
    pub(crate) fn begun(&self) -> Self {
        Self { read: self.read.begun() }
    }

    /// Watches the changes of the collection, which need not exist: each event passes through the stages of `pipeline`. Changes must be
    /// [logged](crate::Database::enable_changes). `docs/change-streams.md` describes the events.
    pub fn watch(&self, pipeline: impl IntoIterator<Item = impl IntoDocument>) -> Watch {
        Watch::new(self.scope.clone(), Watched::Collection((&*self.name).into()), pipeline, self.begin())
    }

    /// Returns the same collection with documents of another type.
    pub fn with_type<U>(&self) -> Collection<U> {
        Collection::new(self.scope.clone(), Arc::clone(&self.name), self.limits.clone())
    }

    /// Updates the first document that matches, in the order of `_id`. `update` holds update operators, or the
    /// stages of a pipeline; see [`IntoUpdate`].
    pub fn update_one(&self, filter: impl IntoDocument, update: impl IntoUpdate) -> Update {
        Update::new(self.call(Request::new(filter)), update, Target::One, UpdateKind::Operators)
    }

    /// Updates every document that matches. `update` holds update operators, or the stages of a pipeline; see [`IntoUpdate`].
    pub fn update_many(&self, filter: impl IntoDocument, update: impl IntoUpdate) -> Update {
        Update::new(self.call(Request::new(filter)), update, Target::All, UpdateKind::Operators)
    }

    /// Deletes the first document that matches, in the order of `_id`.
    pub fn delete_one(&self, filter: impl IntoDocument) -> Delete {
        Delete::new(self.call(Request::new(filter)), Target::One)
    }

    /// Deletes every document that matches.
    pub fn delete_many(&self, filter: impl IntoDocument) -> Delete {
        Delete::new(self.call(Request::new(filter)), Target::All)
    }

    /// Sets top-level fields of stored documents. Each given document changes the stored document with its `_id`: fields of the same name are
    /// replaced in place, new fields are appended, other fields stay. Field names are literal: a dot or a `$` is part of the name. A document whose
    /// `_id` is not stored is inserted. All documents are written, or none.
    ///
    /// ```
    /// # let db = slate_core::Database::open("memory:")?;
    /// use bson::{RawDocumentBuf, doc, rawdoc};
    ///
    /// let users = db.collection::<RawDocumentBuf>("users");
    /// users.insert_one(&rawdoc! { "_id": 1, "name": "Ada", "age": 36 })?;
    /// users.merge_many([doc! { "_id": 1, "age": 37 }, doc! { "_id": 2, "name": "Bob" }])?;
    /// assert_eq!(users.find_by_id(1)?, Some(rawdoc! { "_id": 1, "name": "Ada", "age": 37 }));
    /// # Ok::<(), slate_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fails as [`Collection::insert_one`](Collection::insert_one) does. Uniqueness is checked at the end of the call.
    pub fn merge_many<D: IntoDocument>(&self, documents: impl IntoIterator<Item = D>) -> Result<UpsertManyResult> {
        let documents: Vec<RawDocumentBuf> =
            documents.into_iter().map(IntoDocument::into_document).collect::<Result<_>>()?;
        self.put_raw(&borrowed(&documents), PutKind::Merge)
    }

    fn put_raw(&self, documents: &[&RawDocument], kind: PutKind) -> Result<UpsertManyResult> {
        let call = &self.begin();
        let outcome = self.scope.write(call, |writer| writer.put(&self.name, documents, kind, call))?;
        Ok(UpsertManyResult::of(outcome))
    }

    /// Runs many writes in one transaction; see [`BulkWrite`].
    ///
    /// ```
    /// # let db = slate_core::Database::open("memory:")?;
    /// use bson::{RawDocumentBuf, doc};
    /// use slate_core::WriteOperation;
    ///
    /// let users = db.collection::<RawDocumentBuf>("users");
    /// let outcome = users
    ///     .bulk_write([
    ///         WriteOperation::insert_one(doc! { "_id": 1, "name": "Ada" }),
    ///         WriteOperation::update_one(doc! { "_id": 1 }, doc! { "$set": { "age": 36 } }),
    ///         WriteOperation::delete_many(doc! { "age": { "$lt": 18 } }),
    ///     ])
    ///     .run()?
    ///     .into_result()?;
    /// assert_eq!((outcome.inserted_ids.len(), outcome.modified, outcome.deleted), (1, 1, 0));
    /// # Ok::<(), slate_core::Error>(())
    /// ```
    pub fn bulk_write(&self, operations: impl IntoIterator<Item = WriteOperation>) -> BulkWrite {
        let operations = operations.into_iter().map(|operation| (self.name.to_string(), operation)).collect();
        BulkWrite::new(self.scope.clone(), operations, self.begin())
    }
}

#[cfg(feature = "async")]
impl<T> Collection<T> {
    /// Returns the same collection for async calls that must not wait, with this budget. `None` in a scope whose calls always wait.
    pub(crate) fn within_budget(&self, budget: &crate::interrupt::WaitBudget) -> Option<Self> {
        let read = || ReadCollection { limits: self.limits.within(budget), ..self.read.clone() };
        self.scope.tries_queries().then(|| Self { read: read() })
    }
}

impl<T: Serialize + Any> Collection<T> {
    /// Inserts a document and returns its `_id`. A document without `_id` gets an ObjectId.
    ///
    /// # Errors
    /// [`ErrorKind::DuplicateKey`](crate::ErrorKind::DuplicateKey) if its `_id` or unique values are stored already;
    /// [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge) if it exceeds 16 MiB.
    pub fn insert_one(&self, document: &T) -> Result<Bson> {
        let (document, call) = (to_raw(&self.name, document)?, &self.begin());
        let inserted = self.scope.write(call, |writer| {
            let mut outcome = writer.insert(&self.name, &[&*document], InsertMode::AllOrNone, call)?;
            outcome.refused.pop().map_or(Ok(outcome), |(_, error)| Err(error))
        })?;
        inserted.ids().next().ok_or_else(|| Error::corrupt("an insertion returned no _id"))
    }

    /// Inserts documents: all of them or none, unless [`InsertMany::ordered`] is called. A document without `_id` gets
    /// an ObjectId.
    ///
    /// ```
    /// # let db = slate_core::Database::open("memory:")?;
    /// use bson::{RawDocumentBuf, rawdoc};
    ///
    /// let users = db.collection::<RawDocumentBuf>("users");
    /// let ids = [rawdoc! { "_id": 1 }, rawdoc! { "_id": 1 }, rawdoc! { "_id": 2 }];
    /// assert!(users.insert_many(&ids).run().is_err());
    /// let inserted = users.insert_many(&ids).ordered(false).run()?;
    /// assert_eq!((inserted.inserted_ids.len(), inserted.errors[0].index), (2, 1));
    /// # Ok::<(), slate_core::Error>(())
    /// ```
    pub fn insert_many<'d>(&self, documents: impl IntoIterator<Item = &'d T>) -> InsertMany<'d> {
        let documents = each_to_raw(&self.name, documents).collect();
        InsertMany::new(self.scope.clone(), &self.name, documents, self.begin())
    }

    /// Replaces or inserts documents by their `_id`s: a document with a stored `_id` replaces that one; others are inserted. All documents are
    /// written, or none. A document without `_id` gets an ObjectId; of two documents with the same `_id` the later one is stored.
    ///
    /// # Errors
    /// Fails as [`Collection::insert_one`] does. Uniqueness is checked at the end of the call.
    pub fn upsert_many<'d>(&self, documents: impl IntoIterator<Item = &'d T>) -> Result<UpsertManyResult> {
        let documents: Vec<_> = each_to_raw(&self.name, documents).collect::<Result<_>>()?;
        self.put_raw(&borrowed(&documents), PutKind::Replace)
    }

    /// Replaces the first document that matches, in the order of `_id`. Its `_id` stays.
    ///
    /// [`Update::run`] fails if `replacement` cannot be serialized as a document.
    pub fn replace_one(&self, filter: impl IntoDocument, replacement: &T) -> Update {
        let replacement = Converted(to_raw(&self.name, replacement).map(Cow::into_owned));
        Update::new(self.call(Request::new(filter)), replacement, Target::One, UpdateKind::Replacement)
    }
}

impl<T: DeserializeOwned + Any> Collection<T> {
    /// Updates the first document that matches, by default in the order of `_id`, and returns it, as it was before the update or after it.
    pub fn find_one_and_update(&self, filter: impl IntoDocument, update: impl IntoUpdate) -> FindOneAndUpdate<T> {
        FindOneAndUpdate::new(self.call(Request::new(filter)), update, UpdateKind::Operators)
    }

    /// Deletes the first document that matches, by default in the order of `_id`, and returns it.
    pub fn find_one_and_delete(&self, filter: impl IntoDocument) -> FindOneAndDelete<T> {
        FindOneAndDelete::new(self.call(Request::new(filter)))
    }
}

impl<T: Serialize + DeserializeOwned + Any> Collection<T> {
    /// Replaces the first document that matches, by default in the order of `_id`, and returns it, as it was before or after. Its `_id` stays.
    pub fn find_one_and_replace(&self, filter: impl IntoDocument, replacement: &T) -> FindOneAndUpdate<T> {
        let replacement = Converted(to_raw(&self.name, replacement).map(Cow::into_owned));
        FindOneAndUpdate::new(self.call(Request::new(filter)), replacement, UpdateKind::Replacement)
    }
}

impl<T> Deref for Collection<T> {
    type Target = ReadCollection<T>;

    fn deref(&self) -> &ReadCollection<T> {
        &self.read
    }
}

crate::debug::cloned! { ReadCollection { scope, name, limits, documents } }

crate::debug::cloned! { Collection { read } }

crate::debug::shown! { self: ReadCollection<T> { name: self.name } }

crate::debug::shown! { self: Collection<T> { name: self.name } }
