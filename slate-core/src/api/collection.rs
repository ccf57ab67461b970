use std::{any::Any, borrow::Cow, fmt, marker::PhantomData, ops::Deref, sync::Arc};

use bson::{Bson, RawDocument, RawDocumentBuf};
use serde::{Serialize, de::DeserializeOwned};
use slate_query::raw::with_value;

use crate::{
    BulkWrite, CollectionStats, CreateIndex, Delete, Error, Existing, Find, FindOneAndDelete, FindOneAndUpdate, Index,
    IndexDescription, InsertMany, IntoDocument, PutManyResult, Result, Update, Verify, WriteOperation,
    api::database::As,
    api::document::{borrowed, from_raw, to_raw},
    entry::record_key,
    exec::Target,
    interrupt::Interrupt,
    operation::scope::Scope,
    write::{InsertMode, InsertOutcome, PutKind, UpdateKind},
};

/// A collection's reading half: what a [`Snapshot`](crate::Snapshot) gives, and what every [`Collection`] has too.
pub struct ReadCollection<T> {
    pub(crate) scope: Scope,
    pub(crate) name: Arc<str>,
    documents: As<T>,
}

/// A collection of documents that are read and written as `T`.
///
/// A handle: cheap to clone, to share and to send. Through a [`Transaction`](crate::Transaction) its calls belong to the
/// transaction; otherwise each read sees the last commit and each write is a transaction of its own.
pub struct Collection<T> {
    read: ReadCollection<T>,
}

impl<T> ReadCollection<T> {
    pub(crate) fn new(scope: Scope, name: impl Into<Arc<str>>) -> Self {
        Self { scope, name: name.into(), documents: PhantomData }
    }

    /// The collection's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The documents that match `filter`, in MongoDB's query language. Nothing is read until the builder's
    /// [`run`](Find::run), [`cursor`](Find::cursor), [`count`](Find::count) or the like.
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
        Find::new(self.scope.clone(), &self.name, filter)
    }

    /// How many documents match.
    ///
    /// # Errors
    /// As [`Find::run`].
    pub fn count(&self, filter: impl IntoDocument) -> Result<u64> {
        self.find(filter).count()
    }

    /// The different values at `path` of the documents that match, in BSON's order; elements of arrays count one by one.
    ///
    /// # Errors
    /// As [`Find::run`].
    pub fn distinct(&self, path: &str, filter: impl IntoDocument) -> Result<Vec<Bson>> {
        self.find(filter).distinct(path)
    }

    /// The collection's indexes, in the order they were declared; the one on `_id` is always there and not listed. Those
    /// that are being built come last.
    ///
    /// # Errors
    /// Where the storage fails.
    pub fn indexes(&self) -> Result<Vec<IndexDescription>> {
        let collection = self.scope.definition(&self.name)?;
        Ok(collection.map_or_else(Vec::new, |collection| IndexDescription::all(&collection)))
    }

    /// How much the collection holds: documents, index entries, their bytes. One that is not there holds nothing.
    ///
    /// Cost: none that grows with the collection in memory; elsewhere a walk over all records and entries.
    ///
    /// # Errors
    /// Where the storage fails.
    pub fn stats(&self) -> Result<CollectionStats> {
        self.scope.stats(&self.name)
    }

    /// Looks through the collection for damage: whether every record is a valid document with the right table of its fields
    /// under the key of its `_id`, every index holds every entry that the documents ask for, and no other.
    ///
    /// ```
    /// # let db = slate_core::Database::open("memory:")?;
    /// # let users = db.collection::<bson::RawDocumentBuf>("users");
    /// let report = users.verify().run()?;
    /// assert!(report.is_sound(), "{:?}", report.faults);
    /// # Ok::<(), slate_core::Error>(())
    /// ```
    pub fn verify(&self) -> Verify<'static> {
        Verify::new(self.scope.clone(), vec![self.name.to_string()])
    }

    /// Whether the collection is there: created, or written to.
    ///
    /// # Errors
    /// Where the storage fails.
    pub fn exists(&self) -> Result<bool> {
        Ok(self.scope.definition(&self.name)?.is_some())
    }
}

impl<T: DeserializeOwned + Any> ReadCollection<T> {
    /// A document that matches: the first that the plan comes to. For a certain one, sort.
    ///
    /// # Errors
    /// As [`Find::run`].
    pub fn find_one(&self, filter: impl IntoDocument) -> Result<Option<T>> {
        self.find(filter).first()
    }

    /// The document of that `_id`. Cost: one key.
    ///
    /// # Errors
    /// An `_id` of a type that none can have; as [`Find::run`].
    pub fn find_by_id(&self, id: impl Into<Bson>) -> Result<Option<T>> {
        let key = with_value(&id.into(), record_key)?;
        let mut found = None;
        self.scope.get(&self.name, &key, &mut |bytes| {
            found = Some(from_raw(bytes)?);
            Ok(())
        })?;
        Ok(found)
    }
}

impl<T> Collection<T> {
    pub(crate) fn new(scope: Scope, name: impl Into<Arc<str>>) -> Self {
        Self { read: ReadCollection::new(scope, name) }
    }

    /// The same collection, its documents read and written as another type.
    pub fn with_type<U>(&self) -> Collection<U> {
        Collection::new(self.scope.clone(), Arc::clone(&self.name))
    }

    /// Updates the first document that matches, in the order of `_id`. `update` holds update operators.
    pub fn update_one(&self, filter: impl IntoDocument, update: impl IntoDocument) -> Update {
        Update::new(self.scope.clone(), &self.name, filter, update, Target::One, UpdateKind::Operators)
    }

    /// Updates every document that matches. `update` holds update operators.
    pub fn update_many(&self, filter: impl IntoDocument, update: impl IntoDocument) -> Update {
        Update::new(self.scope.clone(), &self.name, filter, update, Target::All, UpdateKind::Operators)
    }

    /// Deletes the first document that matches, in the order of `_id`.
    pub fn delete_one(&self, filter: impl IntoDocument) -> Delete {
        Delete::new(self.scope.clone(), &self.name, filter, Target::One)
    }

    /// Deletes every document that matches.
    pub fn delete_many(&self, filter: impl IntoDocument) -> Delete {
        Delete::new(self.scope.clone(), &self.name, filter, Target::All)
    }

    /// Writes fields over documents: each document given names one by its `_id`, whose top-level fields of the same names
    /// take the new values, whole and in their places; other fields stay, new ones are appended. Names are literal: a dot
    /// or a `$` is part of them. Where the `_id` is not there, the document is inserted as it is. All of them, or none.
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
    /// As [`Collection::insert_one`](Collection::insert_one); what must be unique must be so at the end of the call.
    pub fn merge_many<D: IntoDocument>(&self, documents: impl IntoIterator<Item = D>) -> Result<PutManyResult> {
        let documents: Vec<RawDocumentBuf> =
            documents.into_iter().map(IntoDocument::into_document).collect::<Result<_>>()?;
        self.put_raw(&borrowed(&documents), PutKind::Merge)
    }

    fn put_raw(&self, documents: &[&RawDocument], kind: PutKind) -> Result<PutManyResult> {
        let outcome = self.scope.write(|writer| writer.put(&self.name, documents, kind, &Interrupt::default()))?;
        Ok(PutManyResult::of(outcome))
    }

    /// Runs many writes as one; see [`BulkWrite`].
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
        BulkWrite::new(self.scope.clone(), operations)
    }

    /// Creates an index and fills it from what is there. One that is there already and does not differ is left alone.
    /// Gives back its name.
    ///
    /// # Errors
    /// [`ErrorKind::Exists`](crate::ErrorKind::Exists) with code 85 or 86 where one of the same keys or name differs;
    /// [`ErrorKind::DuplicateKey`](crate::ErrorKind::DuplicateKey) where documents break a unique one.
    pub fn create_index(&self, index: Index) -> Result<String> {
        self.build_index(index).run()
    }

    /// Creates an index, with progress, deadline and cancellation.
    pub fn build_index(&self, index: Index) -> CreateIndex<'static> {
        CreateIndex::new(self.scope.clone(), &self.name, index)
    }

    /// Drops an index by name; whether it was there.
    ///
    /// # Errors
    /// The index on `_id` cannot be dropped; where the storage fails.
    pub fn drop_index(&self, index: &str) -> Result<bool> {
        self.scope.write(|writer| writer.drop_index(&self.name, index))
    }

    /// Gathers the statistics from which the planner estimates how many documents a condition leaves, from every key of the
    /// collection and its indexes. They are kept up to date as the collection grows or shrinks; call this after values
    /// have changed much in number or distribution otherwise, or where `explain` shows a poor choice.
    ///
    /// Cost: reads every key, outside any transaction; a short transaction then writes the result.
    ///
    /// # Errors
    /// [`ErrorKind::ReadOnly`](crate::ErrorKind::ReadOnly) within a transaction; as a write's.
    pub fn analyze(&self) -> Result<()> {
        self.scope.analyze(&self.name)
    }

    /// Creates the collection, empty. There is seldom a need to: the first document does too.
    ///
    /// # Errors
    /// [`ErrorKind::Exists`](crate::ErrorKind::Exists); a name that no collection can have (code 73).
    pub fn create(&self) -> Result<()> {
        self.scope.write(|writer| {
            if writer.create_collection(&self.name)? {
                return Ok(());
            }
            Err(Error::new(
                crate::ErrorKind::Exists,
                slate_query::Code::NAMESPACE_EXISTS,
                format!("a collection of the name {} exists already", self.name),
            ))
        })
    }

    /// Renames the collection, with its documents and indexes, at once: no commit lies between the two names. Gives back
    /// the collection under its new name; other handles go on naming the old one. Cost: a few keys, whatever its size.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound), code 26, where it is not there;
    /// [`ErrorKind::Exists`](crate::ErrorKind::Exists), code 48, where the other is and [`Existing::Keep`] was said; a name
    /// that no collection can have (code 73), or that it has already (20).
    pub fn rename(&self, to: &str, existing: Existing) -> Result<Self> {
        self.scope.write(|writer| writer.rename_collection(&self.name, to, existing))?;
        Ok(Self::new(self.scope.clone(), to))
    }

    /// Drops the collection with its documents and indexes; whether it was there.
    ///
    /// # Errors
    /// Where the storage fails.
    pub fn drop(&self) -> Result<bool> {
        self.scope.write(|writer| writer.drop_collection(&self.name))
    }
}

impl<T: Serialize + Any> Collection<T> {
    /// Inserts a document. One without `_id` is given an ObjectId. Gives back the `_id`.
    ///
    /// # Errors
    /// [`ErrorKind::DuplicateKey`](crate::ErrorKind::DuplicateKey) where its `_id`, or what a unique index is over, is
    /// there already; [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge) over 16 MiB.
    pub fn insert_one(&self, document: &T) -> Result<Bson> {
        let inserted = self.insert_raw(&[&to_raw(document)?])?;
        inserted.ids().next().ok_or_else(|| Error::corrupt("an insertion gave back no _id"))
    }

    /// Inserts documents: all of them, or none. Gives back their `_id`s, in order.
    ///
    /// # Errors
    /// As [`Collection::insert_one`].
    pub fn insert_many<'d>(&self, documents: impl IntoIterator<Item = &'d T>) -> Result<Vec<Bson>> {
        let documents: Vec<_> = documents.into_iter().map(to_raw).collect::<Result<_>>()?;
        let inserted = self.insert_raw(&borrowed(&documents))?;
        // A value of its own each, and large: they are not moved as the list grows.
        let mut ids = Vec::with_capacity(documents.len());
        ids.extend(inserted.ids());
        Ok(ids)
    }

    /// Inserts documents with a say in what a refused one means for the others; see [`InsertMany`].
    ///
    /// ```
    /// # let db = slate_core::Database::open("memory:")?;
    /// use bson::{RawDocumentBuf, rawdoc};
    ///
    /// let users = db.collection::<RawDocumentBuf>("users");
    /// let inserted = users.insert_batch(&[rawdoc! { "_id": 1 }, rawdoc! { "_id": 1 }, rawdoc! { "_id": 2 }]).unordered().run()?;
    /// assert_eq!((inserted.inserted_ids.len(), inserted.errors[0].index), (2, 1));
    /// # Ok::<(), slate_core::Error>(())
    /// ```
    pub fn insert_batch<'d>(&self, documents: impl IntoIterator<Item = &'d T>) -> InsertMany {
        InsertMany::new(
            self.scope.clone(),
            &self.name,
            documents.into_iter().map(|document| to_raw(document).map(Cow::into_owned)).collect(),
        )
    }

    /// Puts documents by their `_id`s: one whose `_id` is there replaces that document whole, any other is inserted. All
    /// of them, or none. One without `_id` is given an ObjectId; of two with one `_id` the later stays.
    ///
    /// # Errors
    /// As [`Collection::insert_one`]; what must be unique must be so at the end of the call.
    pub fn upsert_many<'d>(&self, documents: impl IntoIterator<Item = &'d T>) -> Result<PutManyResult> {
        let documents: Vec<_> = documents.into_iter().map(to_raw).collect::<Result<_>>()?;
        self.put_raw(&borrowed(&documents), PutKind::Replace)
    }

    fn insert_raw(&self, documents: &[&RawDocument]) -> Result<InsertOutcome> {
        self.scope.write(|writer| {
            let mut outcome = writer.insert(&self.name, documents, InsertMode::AllOrNone, &Interrupt::default())?;
            match outcome.refused.pop() {
                Some((_, error)) => Err(error),
                None => Ok(outcome),
            }
        })
    }

    /// Replaces the first document that matches, in the order of `_id`. Its `_id` stays.
    ///
    /// The builder's [`run`](Update::run) tells where `replacement` cannot be made a document.
    pub fn replace_one(&self, filter: impl IntoDocument, replacement: &T) -> Update {
        let replacement = Replacement(to_raw(replacement).map(Cow::into_owned));
        Update::new(self.scope.clone(), &self.name, filter, replacement, Target::One, UpdateKind::Replacement)
    }
}

impl<T: DeserializeOwned + Any> Collection<T> {
    /// Updates the first document that matches and gives it back, as it was or as it is now.
    pub fn find_one_and_update(&self, filter: impl IntoDocument, update: impl IntoDocument) -> FindOneAndUpdate<T> {
        FindOneAndUpdate::new(self.scope.clone(), &self.name, filter, update, UpdateKind::Operators)
    }

    /// Deletes the first document that matches and gives it back.
    pub fn find_one_and_delete(&self, filter: impl IntoDocument) -> FindOneAndDelete<T> {
        FindOneAndDelete::new(self.scope.clone(), &self.name, filter)
    }
}

impl<T: Serialize + DeserializeOwned + Any> Collection<T> {
    /// Replaces the first document that matches and gives it back, as it was or as it is now. Its `_id` stays.
    pub fn find_one_and_replace(&self, filter: impl IntoDocument, replacement: &T) -> FindOneAndUpdate<T> {
        let replacement = Replacement(to_raw(replacement).map(Cow::into_owned));
        FindOneAndUpdate::new(self.scope.clone(), &self.name, filter, replacement, UpdateKind::Replacement)
    }
}

/// A replacement that may have failed to become a document: the builder tells when it is run.
struct Replacement(Result<RawDocumentBuf>);

impl IntoDocument for Replacement {
    fn into_document(self) -> Result<RawDocumentBuf> {
        self.0
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
        Self::new(self.scope.clone(), Arc::clone(&self.name))
    }
}

impl<T> Clone for Collection<T> {
    fn clone(&self) -> Self {
        Self { read: self.read.clone() }
    }
}

impl<T> fmt::Debug for ReadCollection<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadCollection").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Collection<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collection").field("name", &self.name).finish_non_exhaustive()
    }
}
