use std::{any::Any, borrow::Cow, fmt, ops::Deref};

use bson::{Bson, RawDocumentBuf};
use serde::{Serialize, de::DeserializeOwned};

use super::{Call, Operation, runner::Runner};
use crate::{
    CancelToken, CollectionStats, Count, Distinct, Index, IndexDescription, IntoDocument, RenameTarget, Result,
    UpsertManyResult, WriteOperation, api::document::to_raw,
};

/// The reading half of a collection: what a [`Snapshot`](super::Snapshot) returns, and part of every [`Collection`].
pub struct ReadCollection<T> {
    collection: crate::ReadCollection<T>,
    runner: Runner,
}

/// A collection of documents that are read and written as `T`; see [`slate_core::Collection`](crate::Collection).
///
/// A handle: cheap to clone, share and send. Through a [`Transaction`](super::Transaction) its calls belong to the
/// transaction. Documents are serialized by the caller's task and deserialized by the thread that reads them.
pub struct Collection<T> {
    collection: crate::Collection<T>,
    read: ReadCollection<T>,
}

/// Declares methods without arguments that run the blocking method of the same name.
macro_rules! operations {
    ($how:ident $of:literal: $($name:ident -> $output:ty;)*) => {
        $(
            #[doc = concat!("See [`slate_core::", $of, "::", stringify!($name), "`](crate::", $of, "::", stringify!($name), ").")]
            #[doc = ""]
            #[doc = "# Errors"]
            #[doc = "As the blocking method."]
            pub fn $name(&self) -> Operation<$output> {
                self.$how(|collection| collection.$name())
            }
        )*
    };
}

impl<T> ReadCollection<T> {
    pub(super) fn new(collection: crate::ReadCollection<T>, runner: Runner) -> Self {
        Self { collection, runner }
    }

    /// The collection's name.
    pub fn name(&self) -> &str {
        self.collection.name()
    }

    fn call<B>(&self, builder: B) -> Call<B> {
        Call::new(builder, self.runner.clone())
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
    /// Finds the documents that match `filter`; see [`slate_core::ReadCollection::find`](crate::ReadCollection::find).
    pub fn find(&self, filter: impl IntoDocument) -> Call<crate::Find<T>> {
        self.call(self.collection.find(filter))
    }

    /// Counts the documents that match `filter`.
    pub fn count_documents(&self, filter: impl IntoDocument) -> Call<Count> {
        self.call(self.collection.count_documents(filter))
    }

    /// Returns the distinct values at `path` of the documents that match `filter`.
    pub fn distinct(&self, path: &str, filter: impl IntoDocument) -> Call<Distinct> {
        self.call(self.collection.distinct(path, filter))
    }

    /// Verifies the collection; see [`slate_core::ReadCollection::verify`](crate::ReadCollection::verify).
    pub fn verify(&self) -> Call<crate::Verify<'static>> {
        self.call(self.collection.verify())
    }

    operations! { read "ReadCollection":
        estimated_document_count -> u64;
        list_indexes -> Vec<IndexDescription>;
        stats -> CollectionStats;
        exists -> bool;
    }
}

impl<T: DeserializeOwned + Send + Any> ReadCollection<T> {
    /// Returns one document that matches `filter`; see
    /// [`slate_core::ReadCollection::find_one`](crate::ReadCollection::find_one).
    ///
    /// # Errors
    /// As the blocking method.
    pub fn find_one(&self, filter: impl IntoDocument) -> Operation<Option<T>> {
        self.find(filter).first()
    }

    /// Returns the document with this `_id`; see
    /// [`slate_core::ReadCollection::find_by_id`](crate::ReadCollection::find_by_id).
    ///
    /// # Errors
    /// As the blocking method.
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

    /// The same collection with documents of another type.
    pub fn with_type<U>(&self) -> Collection<U> {
        Collection::new(self.collection.with_type(), self.read.runner.clone())
    }

    /// The collection for blocking code. Through a [`Transaction`](super::Transaction) it belongs to the transaction.
    pub fn as_blocking(&self) -> &crate::Collection<T> {
        &self.collection
    }

    /// Updates the first document that matches, in the order of `_id`.
    pub fn update_one(&self, filter: impl IntoDocument, update: impl IntoDocument) -> Call<crate::Update> {
        self.call(self.collection.update_one(filter, update))
    }

    /// Updates every document that matches.
    pub fn update_many(&self, filter: impl IntoDocument, update: impl IntoDocument) -> Call<crate::Update> {
        self.call(self.collection.update_many(filter, update))
    }

    /// Deletes the first document that matches, in the order of `_id`.
    pub fn delete_one(&self, filter: impl IntoDocument) -> Call<crate::Delete> {
        self.call(self.collection.delete_one(filter))
    }

    /// Deletes every document that matches.
    pub fn delete_many(&self, filter: impl IntoDocument) -> Call<crate::Delete> {
        self.call(self.collection.delete_many(filter))
    }

    /// Runs many writes in one transaction; see [`slate_core::BulkWrite`](crate::BulkWrite).
    pub fn bulk_write(&self, operations: impl IntoIterator<Item = WriteOperation>) -> Call<crate::BulkWrite> {
        self.call(self.collection.bulk_write(operations))
    }

    /// Creates an index; see [`slate_core::CreateIndex`](crate::CreateIndex).
    pub fn create_index(&self, index: Index) -> Call<crate::CreateIndex<'static>> {
        self.call(self.collection.create_index(index))
    }

    /// Sets top-level fields of the documents with the given `_id`s; see
    /// [`slate_core::Collection::merge_many`](crate::Collection::merge_many).
    ///
    /// # Errors
    /// As the blocking method.
    pub fn merge_many<D: IntoDocument>(&self, documents: impl IntoIterator<Item = D>) -> Operation<UpsertManyResult> {
        let documents: Result<Vec<RawDocumentBuf>> = documents.into_iter().map(IntoDocument::into_document).collect();
        self.write(|collection| collection.merge_many(documents?))
    }

    /// Drops an index by name; returns whether it existed.
    ///
    /// # Errors
    /// As the blocking method.
    pub fn drop_index(&self, index: &str) -> Operation<bool> {
        let index = index.to_owned();
        self.write(move |collection| collection.drop_index(&index))
    }

    operations! { write "Collection":
        analyze -> ();
        create -> ();
        drop -> bool;
    }

    /// Renames the collection; see [`slate_core::Collection::rename`](crate::Collection::rename).
    ///
    /// # Errors
    /// As the blocking method.
    pub fn rename(&self, to: &str, target: RenameTarget) -> Operation<Self>
    where
        T: 'static,
    {
        let (runner, to) = (self.read.runner.clone(), to.to_owned());
        self.write(move |collection| Ok(Self::new(collection.rename(&to, target)?.with_type(), runner)))
    }

    /// Runs a write that does not depend on the type of the documents.
    fn write<R: Send + 'static>(
        &self,
        work: impl FnOnce(crate::Collection<RawDocumentBuf>) -> Result<R> + Send + 'static,
    ) -> Operation<R> {
        let collection = self.collection.with_type();
        self.read.runner.write(&CancelToken::new(), |_| work(collection))
    }
}

impl<T: Serialize + Any> Collection<T> {
    /// Inserts a document; see [`slate_core::Collection::insert_one`](crate::Collection::insert_one).
    ///
    /// # Errors
    /// As the blocking method.
    pub fn insert_one(&self, document: &T) -> Operation<Bson> {
        let document = to_raw(document).map(Cow::into_owned);
        self.write(|collection| collection.insert_one(&document?))
    }

    /// Inserts documents; see [`slate_core::Collection::insert_many`](crate::Collection::insert_many).
    pub fn insert_many<'d>(&self, documents: impl IntoIterator<Item = &'d T>) -> Call<crate::InsertMany<'static>> {
        self.call(self.collection.insert_many(documents).into_owned())
    }

    /// Replaces or inserts documents by their `_id`s; see
    /// [`slate_core::Collection::upsert_many`](crate::Collection::upsert_many).
    ///
    /// # Errors
    /// As the blocking method.
    pub fn upsert_many<'d>(&self, documents: impl IntoIterator<Item = &'d T>) -> Operation<UpsertManyResult> {
        let documents: Result<Vec<RawDocumentBuf>> =
            documents.into_iter().map(|document| to_raw(document).map(Cow::into_owned)).collect();
        self.write(|collection| collection.upsert_many(&documents?))
    }

    /// Replaces the first document that matches, in the order of `_id`. Its `_id` stays.
    pub fn replace_one(&self, filter: impl IntoDocument, replacement: &T) -> Call<crate::Update> {
        self.call(self.collection.replace_one(filter, replacement))
    }
}

impl<T: DeserializeOwned + Send + Any> Collection<T> {
    /// Updates the first document that matches and returns it.
    pub fn find_one_and_update(
        &self,
        filter: impl IntoDocument,
        update: impl IntoDocument,
    ) -> Call<crate::FindOneAndUpdate<T>> {
        self.call(self.collection.find_one_and_update(filter, update))
    }

    /// Deletes the first document that matches and returns it.
    pub fn find_one_and_delete(&self, filter: impl IntoDocument) -> Call<crate::FindOneAndDelete<T>> {
        self.call(self.collection.find_one_and_delete(filter))
    }
}

impl<T: Serialize + DeserializeOwned + Send + Any> Collection<T> {
    /// Replaces the first document that matches and returns it. Its `_id` stays.
    pub fn find_one_and_replace(&self, filter: impl IntoDocument, replacement: &T) -> Call<crate::FindOneAndUpdate<T>> {
        self.call(self.collection.find_one_and_replace(filter, replacement))
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
        self.collection.fmt(f)
    }
}

impl<T> fmt::Debug for Collection<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.collection.fmt(f)
    }
}
