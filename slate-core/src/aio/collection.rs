use std::{any::Any, borrow::Cow, fmt, ops::Deref, sync::Arc, time::Duration};

use bson::{Bson, Document, RawDocumentBuf};
use serde::{Serialize, de::DeserializeOwned};

use super::{
    Call, Operation,
    methods::methods,
    runner::{Runner, Short},
};
use crate::{
    Aggregate, BulkWrite, CancelToken, CollectionOptions, CollectionStats, Count, CreateIndex, Delete, Distinct, Find,
    FindOne, FindOneAndDelete, FindOneAndUpdate, Index, IndexDescription, InsertMany, IntoDocument, IntoUpdate,
    RenameTarget, Result, Update, UpsertManyResult, Validator, Verify, View, Watch, WriteOperation,
    document::{Converted, each_to_raw, to_raw},
    interrupt::WaitBudget,
};

/// The reading methods of a collection: [`Snapshot::collection`](super::Snapshot::collection) returns it, and every [`Collection`] dereferences to
/// it.
pub struct ReadCollection<T> {
    blocking: crate::ReadCollection<T>,
    runner: Runner,
}

/// A collection of documents that are read and written as `T`; see [`slate_core::Collection`](crate::Collection).
///
/// A handle: cheap to clone, share and send. Through a [`Transaction`](super::Transaction) its calls belong to the
/// transaction. Documents are serialized by the caller's task and deserialized by the thread that reads them.
pub struct Collection<T> {
    blocking: crate::Collection<T>,
    read: ReadCollection<T>,
}

impl<T: 'static> ReadCollection<T> {
    pub(super) fn new(collection: crate::ReadCollection<T>, runner: Runner) -> Self {
        Self { blocking: collection, runner }
    }

    methods! { handles "ReadCollection":
        /// The time begins when the method is called, not when its result is awaited.
        with_deadline(within: Duration);
        with_cancel(token: CancelToken);
    }

    /// Returns the collection's name within its database.
    pub fn name(&self) -> &str {
        self.blocking.name()
    }

    /// Returns the name of the collection's database.
    pub fn database_name(&self) -> &str {
        self.blocking.database_name()
    }

    fn with(&self, blocking: crate::ReadCollection<T>) -> Self {
        Self { blocking, runner: self.runner() }
    }

    fn runner(&self) -> Runner {
        self.runner.clone()
    }

    fn read<R: Send + 'static>(
        &self,
        run: impl Fn(crate::ReadCollection<T>) -> Result<R> + Send + 'static,
    ) -> Operation<R> {
        self.runner.read(CancelToken::new(), self.blocking.begun(), run)
    }

    methods! { calls "ReadCollection":
        find(filter: impl IntoDocument) -> Find<T>;
        aggregate(pipeline: impl IntoIterator<Item = impl IntoDocument>) -> Aggregate<Document>;
        count_documents(filter: impl IntoDocument) -> Count;
        distinct(path: &str, filter: impl IntoDocument) -> Distinct;
        verify() -> Verify<'static>;
    }

    methods! { read "ReadCollection":
        estimated_document_count() -> u64;
        list_indexes() -> Vec<IndexDescription>;
        stats() -> CollectionStats;
        exists() -> bool;
    }
}

impl<T: DeserializeOwned + Send + Any> ReadCollection<T> {
    methods! { calls "ReadCollection":
        find_one(filter: impl IntoDocument) -> FindOne<T>;
    }

    /// See [`slate_core::ReadCollection::find_by_id`](crate::ReadCollection::find_by_id).
    ///
    /// # Errors
    /// Fails as the blocking method does.
    pub fn find_by_id(&self, id: impl Into<Bson>) -> Operation<Option<T>> {
        let id = id.into();
        self.read(move |collection| collection.find_by_id(&id))
    }
}

impl<T: 'static> Collection<T> {
    pub(super) fn new(collection: crate::Collection<T>, runner: Runner) -> Self {
        let read = ReadCollection::new(crate::ReadCollection::clone(&collection), runner);
        Self { blocking: collection, read }
    }

    methods! { handles "Collection":
        with_deadline(within: Duration);
        with_cancel(token: CancelToken);
    }

    /// Returns the same collection with documents of another type.
    pub fn with_type<U: 'static>(&self) -> Collection<U> {
        Collection::new(self.blocking.with_type(), self.runner())
    }

    /// Returns the collection for blocking code. Through a [`Transaction`](super::Transaction) it belongs to the
    /// transaction.
    pub fn as_blocking(&self) -> &crate::Collection<T> {
        &self.blocking
    }

    fn with(&self, blocking: crate::Collection<T>) -> Self {
        Self::new(blocking, self.runner())
    }

    fn write<R: Send + 'static>(
        &self,
        run: impl FnOnce(crate::Collection<T>) -> Result<R> + Send + 'static,
    ) -> Operation<R> {
        let collection = self.blocking.begun();
        self.read.runner.write(CancelToken::new(), move || run(collection))
    }

    methods! { calls "Collection":
        update_one(filter: impl IntoDocument, update: impl IntoUpdate) -> Update;
        update_many(filter: impl IntoDocument, update: impl IntoUpdate) -> Update;
        delete_one(filter: impl IntoDocument) -> Delete;
        delete_many(filter: impl IntoDocument) -> Delete;
        bulk_write(operations: impl IntoIterator<Item = WriteOperation>) -> BulkWrite;
        watch(pipeline: impl IntoIterator<Item = impl IntoDocument>) -> Watch;
        create_index(index: Index) -> CreateIndex<'static>;
    }

    methods! { write "Collection":
        analyze() -> ();
        create() -> ();
        create_with(options: &CollectionOptions) -> ();
        drop() -> bool;
        drop_index(index: &str) -> bool;
        hide_index(index: &str) -> bool;
        show_index(index: &str) -> bool;
        set_view(view: &View) -> ();
    }

    methods! { write "Collection" owned:
        keep_images(is_kept: bool) -> ();
        set_validator(validator: Option<Validator>) -> ();
    }

    /// See [`slate_core::Collection::create_indexes`](crate::Collection::create_indexes).
    ///
    /// # Errors
    /// Fails as the blocking method does.
    pub fn create_indexes(&self, indexes: impl IntoIterator<Item = Index>) -> Operation<Vec<String>> {
        let indexes: Vec<Index> = indexes.into_iter().collect();
        self.write(move |collection| collection.create_indexes(indexes))
    }

    /// See [`slate_core::Collection::merge_many`](crate::Collection::merge_many).
    ///
    /// # Errors
    /// Fails as the blocking method does.
    pub fn merge_many<D: IntoDocument>(&self, documents: impl IntoIterator<Item = D>) -> Operation<UpsertManyResult> {
        let documents: Vec<_> = documents.into_iter().map(|document| Converted(document.into_document())).collect();
        self.write(|collection| collection.merge_many(documents))
    }

    /// See [`slate_core::Collection::rename`](crate::Collection::rename).
    ///
    /// # Errors
    /// Fails as the blocking method does.
    pub fn rename(&self, to: &str, target: RenameTarget) -> Operation<Self> {
        let (runner, to) = (self.runner(), to.to_owned());
        self.write(move |collection| Ok(Self::new(collection.rename(&to, target)?, runner)))
    }
}

impl<T: Serialize + Any> Collection<T> {
    methods! { calls "Collection":
        replace_one(filter: impl IntoDocument, replacement: &T) -> Update;
    }

    /// See [`slate_core::Collection::insert_one`](crate::Collection::insert_one).
    ///
    /// # Errors
    /// Fails as the blocking method does.
    pub fn insert_one(&self, document: &T) -> Operation<Bson> {
        let document = match to_raw(self.blocking.name(), document) {
            Ok(document) => Arc::new(document.into_owned()),
            Err(error) => return Operation::new(async { Err(error) }),
        };
        let insert = InsertOne { collection: self.blocking.begun().with_type(), document };
        self.read
            .runner
            .write_short(CancelToken::new(), insert, |insert| insert.collection.insert_one(&insert.document))
    }

    /// See [`slate_core::Collection::insert_many`](crate::Collection::insert_many).
    pub fn insert_many<'d>(&self, documents: impl IntoIterator<Item = &'d T>) -> Call<InsertMany<'static>> {
        Call::new(self.blocking.insert_many(documents).into_owned(), self.runner())
    }

    /// See [`slate_core::Collection::upsert_many`](crate::Collection::upsert_many).
    ///
    /// # Errors
    /// Fails as the blocking method does.
    pub fn upsert_many<'d>(&self, documents: impl IntoIterator<Item = &'d T>) -> Operation<UpsertManyResult> {
        let documents = each_to_raw(self.blocking.name(), documents);
        let documents: Result<Vec<RawDocumentBuf>> = documents.map(|document| document.map(Cow::into_owned)).collect();
        self.write(|collection| collection.with_type().upsert_many(&documents?))
    }
}

impl<T: DeserializeOwned + Send + Any> Collection<T> {
    methods! { calls "Collection":
        find_one_and_update(filter: impl IntoDocument, update: impl IntoUpdate) -> FindOneAndUpdate<T>;
        find_one_and_delete(filter: impl IntoDocument) -> FindOneAndDelete<T>;
    }
}

impl<T: Serialize + DeserializeOwned + Send + Any> Collection<T> {
    methods! { calls "Collection":
        find_one_and_replace(filter: impl IntoDocument, replacement: &T) -> FindOneAndUpdate<T>;
    }
}

/// The insertion of one document, as a call that can be tried.
struct InsertOne {
    collection: crate::Collection<RawDocumentBuf>,
    document: Arc<RawDocumentBuf>,
}

impl Short for InsertOne {
    fn within_budget(&self, budget: &WaitBudget) -> Option<Self> {
        /// Maximum length in bytes of a document that the awaiting task inserts. A longer document takes too long to
        /// validate and to store.
        const LONGEST: usize = 64 << 10;
        let collection =
            (self.document.as_bytes().len() <= LONGEST).then(|| self.collection.within_budget(budget))??;
        Some(Self { collection, document: Arc::clone(&self.document) })
    }
}

impl<T> Deref for Collection<T> {
    type Target = ReadCollection<T>;

    fn deref(&self) -> &ReadCollection<T> {
        &self.read
    }
}

crate::debug::cloned! { ReadCollection { blocking, runner } }

crate::debug::cloned! { Collection { blocking, read } }

impl<T> fmt::Debug for ReadCollection<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.blocking.fmt(f)
    }
}

impl<T> fmt::Debug for Collection<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.blocking.fmt(f)
    }
}
