use std::{any::Any, borrow::Cow, fmt, ops::Deref};

use bson::{Bson, RawDocumentBuf};
use serde::{Serialize, de::DeserializeOwned};

use super::{
    BulkWrite, CreateIndex, Delete, Find, FindOneAndDelete, FindOneAndUpdate, InsertMany, Operation, Update, Verify,
    runner::Runner,
};
use crate::{
    CancelToken, CollectionStats, Existing, Index, IndexDescription, IntoDocument, PutManyResult, Result,
    WriteOperation, api::document::to_raw,
};

/// A collection's reading half: what a [`Snapshot`](super::Snapshot) gives, and what every [`Collection`] has too.
pub struct ReadCollection<T> {
    collection: crate::ReadCollection<T>,
    runner: Runner,
}

/// A collection of documents that are read and written as `T`.
///
/// A handle: cheap to clone, to share and to send. Through a [`Transaction`](super::Transaction) its calls belong to the
/// transaction; otherwise each read sees the last commit and each write is a transaction of its own.
///
/// Documents are turned into bytes by the caller's task, and from bytes by the thread that reads them.
pub struct Collection<T> {
    collection: crate::Collection<T>,
    read: ReadCollection<T>,
}

impl<T> ReadCollection<T> {
    pub(super) fn new(collection: crate::ReadCollection<T>, runner: Runner) -> Self {
        Self { collection, runner }
    }

    /// The collection's name.
    pub fn name(&self) -> &str {
        self.collection.name()
    }

    fn read<R: Send + 'static>(
        &self,
        work: impl FnOnce(crate::ReadCollection<T>) -> Result<R> + Send + 'static,
    ) -> Operation<R>
    where
        T: 'static,
    {
        let collection = self.collection.clone();
        self.runner.read(&CancelToken::new(), |_| work(collection))
    }
}

impl<T: 'static> ReadCollection<T> {
    /// The documents that match `filter`, in MongoDB's query language. Nothing is read until the builder's
    /// [`run`](Find::run), [`collect`](Find::collect), [`count`](Find::count) or the like.
    pub fn find(&self, filter: impl IntoDocument) -> Find<T> {
        Find::new(self.collection.find(filter), self.runner.clone())
    }

    /// How many documents match.
    ///
    /// # Errors
    /// As [`Find::run`].
    pub fn count(&self, filter: impl IntoDocument) -> Operation<u64> {
        self.find(filter).count()
    }

    /// The different values at `path` of the documents that match, in BSON's order; elements of arrays count one by one.
    ///
    /// # Errors
    /// As [`Find::run`].
    pub fn distinct(&self, path: &str, filter: impl IntoDocument) -> Operation<Vec<Bson>> {
        self.find(filter).distinct(path)
    }

    /// The collection's indexes, in the order they were declared; the one on `_id` is always there and not listed.
    ///
    /// # Errors
    /// Where the storage fails.
    pub fn indexes(&self) -> Operation<Vec<IndexDescription>> {
        self.read(|collection| collection.indexes())
    }

    /// How much the collection holds: documents, index entries, their bytes. One that is not there holds nothing.
    ///
    /// Cost: none that grows with the collection in memory; elsewhere a walk over all records and entries.
    ///
    /// # Errors
    /// Where the storage fails.
    pub fn stats(&self) -> Operation<CollectionStats> {
        self.read(|collection| collection.stats())
    }

    /// Looks through the collection for damage; see
    /// [`slate_core::ReadCollection::verify`](crate::ReadCollection::verify).
    pub fn verify(&self) -> Verify {
        let collection = self.collection.clone();
        Verify::new(move || Ok(collection.verify()), self.runner.clone())
    }

    /// Whether the collection is there: created, or written to.
    ///
    /// # Errors
    /// Where the storage fails.
    pub fn exists(&self) -> Operation<bool> {
        self.read(|collection| collection.exists())
    }
}

impl<T: DeserializeOwned + Send + Any> ReadCollection<T> {
    /// A document that matches: the first that the plan comes to. For a certain one, sort.
    ///
    /// # Errors
    /// As [`Find::run`].
    pub fn find_one(&self, filter: impl IntoDocument) -> Operation<Option<T>> {
        self.find(filter).first()
    }

    /// The document of that `_id`. Cost: one key.
    ///
    /// # Errors
    /// An `_id` of a type that none can have; as [`Find::run`].
    pub fn find_by_id(&self, id: impl Into<Bson>) -> Operation<Option<T>> {
        let id = id.into();
        self.read(|collection| collection.find_by_id(id))
    }
}

impl<T> Collection<T> {
    pub(super) fn new(collection: crate::Collection<T>, runner: Runner) -> Self {
        let read = ReadCollection::new(crate::ReadCollection::clone(&collection), runner);
        Self { collection, read }
    }

    /// The same collection, its documents read and written as another type.
    pub fn with_type<U>(&self) -> Collection<U> {
        Collection::new(self.collection.with_type(), self.runner())
    }

    /// The collection for blocking code. Through a [`Transaction`](super::Transaction) it belongs to the transaction.
    pub fn as_blocking(&self) -> &crate::Collection<T> {
        &self.collection
    }

    /// Updates the first document that matches, in the order of `_id`. `update` holds update operators.
    pub fn update_one(&self, filter: impl IntoDocument, update: impl IntoDocument) -> Update {
        Update::new(self.collection.update_one(filter, update), self.runner())
    }

    /// Updates every document that matches. `update` holds update operators.
    pub fn update_many(&self, filter: impl IntoDocument, update: impl IntoDocument) -> Update {
        Update::new(self.collection.update_many(filter, update), self.runner())
    }

    /// Deletes the first document that matches, in the order of `_id`.
    pub fn delete_one(&self, filter: impl IntoDocument) -> Delete {
        Delete::new(self.collection.delete_one(filter), self.runner())
    }

    /// Deletes every document that matches.
    pub fn delete_many(&self, filter: impl IntoDocument) -> Delete {
        Delete::new(self.collection.delete_many(filter), self.runner())
    }

    /// Writes fields over documents; see [`slate_core::Collection::merge_many`](crate::Collection::merge_many). All of
    /// them, or none.
    ///
    /// # Errors
    /// As [`Collection::insert_one`]; what must be unique must be so at the end of the call.
    pub fn merge_many<D: IntoDocument>(&self, documents: impl IntoIterator<Item = D>) -> Operation<PutManyResult> {
        let documents: Result<Vec<RawDocumentBuf>> = documents.into_iter().map(IntoDocument::into_document).collect();
        self.write(|collection| collection.merge_many(documents?))
    }

    /// Runs many writes as one; see [`BulkWrite`].
    pub fn bulk_write(&self, operations: impl IntoIterator<Item = WriteOperation>) -> BulkWrite {
        BulkWrite::new(self.collection.bulk_write(operations), self.runner())
    }

    /// Creates an index and fills it from what is there. One that is there already and does not differ is left alone.
    /// Gives back its name.
    ///
    /// # Errors
    /// As [`slate_core::Collection::create_index`](crate::Collection::create_index).
    pub fn create_index(&self, index: Index) -> Operation<String> {
        self.build_index(index).run()
    }

    /// Creates an index, with progress, deadline and cancellation.
    pub fn build_index(&self, index: Index) -> CreateIndex {
        CreateIndex::new(self.collection.with_type(), index, self.runner())
    }

    /// Drops an index by name; whether it was there.
    ///
    /// # Errors
    /// The index on `_id` cannot be dropped; where the storage fails.
    pub fn drop_index(&self, index: &str) -> Operation<bool> {
        let index = index.to_owned();
        self.write(move |collection| collection.drop_index(&index))
    }

    /// Gathers the statistics that the planner estimates from; see
    /// [`Collection::analyze`](crate::Collection::analyze).
    ///
    /// # Errors
    /// As there.
    pub fn analyze(&self) -> Operation<()> {
        self.write(|collection| collection.analyze())
    }

    /// Creates the collection, empty. There is seldom a need to: the first document does too.
    ///
    /// # Errors
    /// [`ErrorKind::Exists`](crate::ErrorKind::Exists); a name that no collection can have (code 73).
    pub fn create(&self) -> Operation<()> {
        self.write(|collection| collection.create())
    }

    /// Renames the collection, with its documents and indexes, at once; see
    /// [`slate_core::Collection::rename`](crate::Collection::rename). Gives back the collection under its new name; other
    /// handles go on naming the old one.
    ///
    /// # Errors
    /// As [`slate_core::Collection::rename`](crate::Collection::rename).
    pub fn rename(&self, to: &str, existing: Existing) -> Operation<Self>
    where
        T: 'static,
    {
        let (runner, collection, to) = (self.runner(), self.collection.clone(), to.to_owned());
        self.runner().write(&CancelToken::new(), move |_| Ok(Self::new(collection.rename(&to, existing)?, runner)))
    }

    /// Drops the collection with its documents and indexes; whether it was there.
    ///
    /// # Errors
    /// Where the storage fails.
    pub fn drop(&self) -> Operation<bool> {
        self.write(|collection| collection.drop())
    }

    fn runner(&self) -> Runner {
        self.read.runner.clone()
    }

    /// What a document is to its caller does not matter any more.
    fn write<R: Send + 'static>(
        &self,
        work: impl FnOnce(crate::Collection<RawDocumentBuf>) -> Result<R> + Send + 'static,
    ) -> Operation<R> {
        let collection = self.collection.with_type();
        self.read.runner.write(&CancelToken::new(), |_| work(collection))
    }
}

impl<T: Serialize + Any> Collection<T> {
    /// Inserts a document. One without `_id` is given an ObjectId. Gives back the `_id`.
    ///
    /// # Errors
    /// As [`slate_core::Collection::insert_one`](crate::Collection::insert_one).
    pub fn insert_one(&self, document: &T) -> Operation<Bson> {
        let document = to_raw(document).map(Cow::into_owned);
        self.write(|collection| collection.insert_one(&document?))
    }

    /// Inserts documents: all of them, or none. Gives back their `_id`s, in order.
    ///
    /// # Errors
    /// As [`Collection::insert_one`].
    pub fn insert_many<'d>(&self, documents: impl IntoIterator<Item = &'d T>) -> Operation<Vec<Bson>> {
        let documents: Result<Vec<RawDocumentBuf>> =
            documents.into_iter().map(|document| to_raw(document).map(Cow::into_owned)).collect();
        self.write(|collection| collection.insert_many(&documents?))
    }

    /// Inserts documents with a say in what a refused one means for the others; see [`InsertMany`].
    pub fn insert_batch<'d>(&self, documents: impl IntoIterator<Item = &'d T>) -> InsertMany {
        InsertMany::new(self.collection.insert_batch(documents), self.runner())
    }

    /// Puts documents by their `_id`s: one whose `_id` is there replaces that document whole, any other is inserted. All
    /// of them, or none. One without `_id` is given an ObjectId; of two with one `_id` the later stays.
    ///
    /// # Errors
    /// As [`Collection::insert_one`]; what must be unique must be so at the end of the call.
    pub fn upsert_many<'d>(&self, documents: impl IntoIterator<Item = &'d T>) -> Operation<PutManyResult> {
        let documents: Result<Vec<RawDocumentBuf>> =
            documents.into_iter().map(|document| to_raw(document).map(Cow::into_owned)).collect();
        self.write(|collection| collection.upsert_many(&documents?))
    }

    /// Replaces the first document that matches, in the order of `_id`. Its `_id` stays.
    ///
    /// The builder's [`run`](Update::run) tells where `replacement` cannot be made a document.
    pub fn replace_one(&self, filter: impl IntoDocument, replacement: &T) -> Update {
        Update::new(self.collection.replace_one(filter, replacement), self.runner())
    }
}

impl<T: DeserializeOwned + Send + Any> Collection<T> {
    /// Updates the first document that matches and gives it back, as it was or as it is now.
    pub fn find_one_and_update(&self, filter: impl IntoDocument, update: impl IntoDocument) -> FindOneAndUpdate<T> {
        FindOneAndUpdate::new(self.collection.find_one_and_update(filter, update), self.runner())
    }

    /// Deletes the first document that matches and gives it back.
    pub fn find_one_and_delete(&self, filter: impl IntoDocument) -> FindOneAndDelete<T> {
        FindOneAndDelete::new(self.collection.find_one_and_delete(filter), self.runner())
    }
}

impl<T: Serialize + DeserializeOwned + Send + Any> Collection<T> {
    /// Replaces the first document that matches and gives it back, as it was or as it is now. Its `_id` stays.
    pub fn find_one_and_replace(&self, filter: impl IntoDocument, replacement: &T) -> FindOneAndUpdate<T> {
        FindOneAndUpdate::new(self.collection.find_one_and_replace(filter, replacement), self.runner())
    }
}

impl<T> Deref for Collection<T> {
    type Target = ReadCollection<T>;

    fn deref(&self) -> &ReadCollection<T> {
        &self.read
    }
}

impl<T> Clone for ReadCollection<T> {
    fn clone(&self) -> Self {
        Self::new(self.collection.clone(), self.runner.clone())
    }
}

impl<T> Clone for Collection<T> {
    fn clone(&self) -> Self {
        Self { collection: self.collection.clone(), read: self.read.clone() }
    }
}

impl<T> fmt::Debug for ReadCollection<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadCollection").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Collection<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collection").field("name", &self.name()).finish_non_exhaustive()
    }
}
