use std::{any::Any, borrow::Cow, fmt, ops::Deref, sync::Arc, time::Duration};

use bson::{Bson, Document, RawDocumentBuf};
use serde::{Serialize, de::DeserializeOwned};

use super::{
    Call, Operation,
    runner::{Runner, Short},
};
use crate::{
    Aggregate, BulkWrite, CancelToken, CollectionOptions, CollectionStats, Count, CreateIndex, Delete, Distinct, Find,
    FindOne, FindOneAndDelete, FindOneAndUpdate, Index, IndexDescription, InsertMany, IntoDocument, IntoUpdate,
    RenameTarget, Result, Update, UpsertManyResult, Validator, Verify, View, Watch, WriteOperation,
    document::{Converted, each_to_raw, to_raw},
    interrupt::WaitBudget,
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

/// Declares methods that return the builder of the blocking method of the same name.
macro_rules! calls {
    ($of:literal: $($name:ident($($argument:ident: $type:ty),*) -> $builder:ty;)*) => {
        $(
            #[doc = concat!("See [`slate_core::", $of, "::", stringify!($name), "`](crate::", $of, "::", stringify!($name), ").")]
            pub fn $name(&self, $($argument: $type),*) -> Call<$builder> {
                Call::new(self.collection.$name($($argument),*), self.runner().clone())
            }
        )*
    };
}

/// Declares methods that run the blocking method of the same name on an owned collection, with owned arguments.
macro_rules! operations {
    ($how:ident $of:literal: $($name:ident($($argument:ident: &$type:ty),*) -> $output:ty;)*) => {
        $(
            #[doc = concat!("See [`slate_core::", $of, "::", stringify!($name), "`](crate::", $of, "::", stringify!($name), ").")]
            #[doc = ""]
            #[doc = "# Errors"]
            #[doc = "As the blocking method."]
            pub fn $name(&self, $($argument: &$type),*) -> Operation<$output> {
                $(let $argument = $argument.to_owned();)*
                self.$how(move |collection| collection.$name($(&$argument),*))
            }
        )*
    };
}

impl<T: 'static> ReadCollection<T> {
    pub(super) fn new(collection: crate::ReadCollection<T>, runner: Runner) -> Self {
        Self { collection, runner }
    }

    /// See [`slate_core::ReadCollection::with_deadline`](crate::ReadCollection::with_deadline). The time begins when the method is
    /// called, not when its result is awaited.
    #[must_use]
    pub fn with_deadline(&self, within: Duration) -> Self {
        Self { collection: self.collection.with_deadline(within), runner: self.runner.clone() }
    }

    /// See [`slate_core::ReadCollection::with_cancel`](crate::ReadCollection::with_cancel).
    #[must_use]
    pub fn with_cancel(&self, token: CancelToken) -> Self {
        Self { collection: self.collection.with_cancel(token), runner: self.runner.clone() }
    }

    /// Returns the collection's name.
    pub fn name(&self) -> &str {
        self.collection.name()
    }

    /// Returns the name of its database.
    pub fn database_name(&self) -> &str {
        self.collection.database_name()
    }

    fn runner(&self) -> &Runner {
        &self.runner
    }

    fn read<R: Send + 'static>(
        &self,
        run: impl Fn(crate::ReadCollection<T>) -> Result<R> + Send + 'static,
    ) -> Operation<R> {
        self.runner.read(CancelToken::new(), self.collection.begun(), run)
    }

    calls! { "ReadCollection":
        find(filter: impl IntoDocument) -> Find<T>;
        aggregate(pipeline: impl IntoIterator<Item = impl IntoDocument>) -> Aggregate<Document>;
        count_documents(filter: impl IntoDocument) -> Count;
        distinct(path: &str, filter: impl IntoDocument) -> Distinct;
        verify() -> Verify<'static>;
    }

    operations! { read "ReadCollection":
        estimated_document_count() -> u64;
        list_indexes() -> Vec<IndexDescription>;
        stats() -> CollectionStats;
        exists() -> bool;
    }
}

impl<T: DeserializeOwned + Send + Any> ReadCollection<T> {
    calls! { "ReadCollection":
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
        Self { collection, read }
    }

    /// See [`ReadCollection::with_deadline`].
    #[must_use]
    pub fn with_deadline(&self, within: Duration) -> Self {
        Self::new(self.collection.with_deadline(within), self.read.runner.clone())
    }

    /// See [`ReadCollection::with_cancel`].
    #[must_use]
    pub fn with_cancel(&self, token: CancelToken) -> Self {
        Self::new(self.collection.with_cancel(token), self.read.runner.clone())
    }

    /// Returns the same collection with documents of another type.
    pub fn with_type<U: 'static>(&self) -> Collection<U> {
        Collection::new(self.collection.with_type(), self.read.runner.clone())
    }

    /// Returns the collection for blocking code. Through a [`Transaction`](super::Transaction) it belongs to the
    /// transaction.
    pub fn as_blocking(&self) -> &crate::Collection<T> {
        &self.collection
    }

    fn runner(&self) -> &Runner {
        &self.read.runner
    }

    fn write<R: Send + 'static>(
        &self,
        run: impl FnOnce(crate::Collection<T>) -> Result<R> + Send + 'static,
    ) -> Operation<R> {
        let collection = self.collection.begun();
        self.runner().write(CancelToken::new(), move || run(collection))
    }

    calls! { "Collection":
        update_one(filter: impl IntoDocument, update: impl IntoUpdate) -> Update;
        update_many(filter: impl IntoDocument, update: impl IntoUpdate) -> Update;
        delete_one(filter: impl IntoDocument) -> Delete;
        delete_many(filter: impl IntoDocument) -> Delete;
        bulk_write(operations: impl IntoIterator<Item = WriteOperation>) -> BulkWrite;
        watch(pipeline: impl IntoIterator<Item = impl IntoDocument>) -> Watch;
        create_index(index: Index) -> CreateIndex<'static>;
    }

    operations! { write "Collection":
        analyze() -> ();
        create() -> ();
        create_with(options: &CollectionOptions) -> ();
        drop() -> bool;
        drop_index(index: &str) -> bool;
        hide_index(index: &str) -> bool;
        show_index(index: &str) -> bool;
    }

    /// See [`slate_core::Collection::set_view`](crate::Collection::set_view).
    ///
    /// # Errors
    /// Fails as the blocking method does.
    pub fn set_view(&self, view: &View) -> Operation<()> {
        let view = view.clone();
        self.write(move |collection| collection.set_view(&view))
    }

    /// See [`slate_core::Collection::keep_images`](crate::Collection::keep_images).
    ///
    /// # Errors
    /// Fails as the blocking method does.
    pub fn keep_images(&self, is_kept: bool) -> Operation<()> {
        self.write(move |collection| collection.keep_images(is_kept))
    }

    /// See [`slate_core::Collection::set_validator`](crate::Collection::set_validator).
    ///
    /// # Errors
    /// Fails as the blocking method does.
    pub fn set_validator(&self, validator: Option<Validator>) -> Operation<()> {
        self.write(move |collection| collection.set_validator(validator))
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
        let (runner, to) = (self.runner().clone(), to.to_owned());
        self.write(move |collection| Ok(Self::new(collection.rename(&to, target)?, runner)))
    }
}

impl<T: Serialize + Any> Collection<T> {
    calls! { "Collection":
        replace_one(filter: impl IntoDocument, replacement: &T) -> Update;
    }

    /// See [`slate_core::Collection::insert_one`](crate::Collection::insert_one).
    ///
    /// # Errors
    /// Fails as the blocking method does.
    pub fn insert_one(&self, document: &T) -> Operation<Bson> {
        let document = match to_raw(self.collection.name(), document) {
            Ok(document) => Arc::new(document.into_owned()),
            Err(error) => return Operation::new(async { Err(error) }),
        };
        let insert = InsertOne { collection: self.collection.begun().with_type(), document };
        self.runner().write_short(CancelToken::new(), insert, |insert| insert.collection.insert_one(&insert.document))
    }

    /// See [`slate_core::Collection::insert_many`](crate::Collection::insert_many).
    pub fn insert_many<'d>(&self, documents: impl IntoIterator<Item = &'d T>) -> Call<InsertMany<'static>> {
        Call::new(self.collection.insert_many(documents).into_owned(), self.runner().clone())
    }

    /// See [`slate_core::Collection::upsert_many`](crate::Collection::upsert_many).
    ///
    /// # Errors
    /// Fails as the blocking method does.
    pub fn upsert_many<'d>(&self, documents: impl IntoIterator<Item = &'d T>) -> Operation<UpsertManyResult> {
        let documents = each_to_raw(self.collection.name(), documents);
        let documents: Result<Vec<RawDocumentBuf>> = documents.map(|document| document.map(Cow::into_owned)).collect();
        self.write(|collection| collection.with_type().upsert_many(&documents?))
    }
}

impl<T: DeserializeOwned + Send + Any> Collection<T> {
    calls! { "Collection":
        find_one_and_update(filter: impl IntoDocument, update: impl IntoUpdate) -> FindOneAndUpdate<T>;
        find_one_and_delete(filter: impl IntoDocument) -> FindOneAndDelete<T>;
    }
}

impl<T: Serialize + DeserializeOwned + Send + Any> Collection<T> {
    calls! { "Collection":
        find_one_and_replace(filter: impl IntoDocument, replacement: &T) -> FindOneAndUpdate<T>;
    }
}

/// The insertion of one document.
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

impl<T> Clone for ReadCollection<T> {
    fn clone(&self) -> Self {
        Self { collection: self.collection.clone(), runner: self.runner.clone() }
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
