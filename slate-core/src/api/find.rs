//! A query and its rows: the builder, the documents that a cursor lends, the iterator over them; counts and distinct values.

use std::{any::Any, fmt, marker::PhantomData, sync::Arc};

use bson::Bson;
use serde::{Deserialize, de::DeserializeOwned};
use slate_query::{
    raw::Doc,
    serde::{deserialize, deserialize_value},
};

use crate::{
    Cursor, Error, Explain, ExplainVerbosity, LiveQuery, Result, Row,
    api::{setters::setters, watch::Following},
    call::{Request, ScopedRequest, live::LiveState},
    call_context::CallContext,
    document::{As, as_raw, from_raw},
    exec::Rows,
};

/// A query of one collection; see [`ReadCollection::find`](crate::ReadCollection::find).
#[must_use = "nothing is read until `run`, `cursor`, `first`, `explain`, `count().run` or `distinct(…).run`"]
pub struct Find<T> {
    pub(crate) scoped: ScopedRequest,
    documents: As<T>,
}

/// Counts the documents that a query matches; see
/// [`ReadCollection::count_documents`](crate::ReadCollection::count_documents) and [`Find::count`].
#[derive(Clone)]
#[must_use = "nothing is counted until `run`"]
pub struct Count {
    pub(crate) scoped: ScopedRequest,
}

/// Collects the distinct values of a field; see [`ReadCollection::distinct`](crate::ReadCollection::distinct) and
/// [`Find::distinct`].
#[derive(Clone)]
#[must_use = "nothing is read until `run`"]
pub struct Distinct {
    pub(crate) scoped: ScopedRequest,
    path: String,
}

impl<T> Find<T> {
    pub(crate) fn new(scoped: ScopedRequest) -> Self {
        Self { scoped, documents: PhantomData }
    }

    setters! {
        scoped.request: sort, projection, skip, limit, hint, let_variables, collation, force;
        scoped.request.call: deadline, cancel, memory_limit, allow_disk_use
    }

    /// Opens a cursor that lends each document without copying it.
    ///
    /// # Errors
    /// Fails if the query is not valid, with MongoDB's code and the path at fault, or if the storage fails.
    pub fn cursor(self) -> Result<Cursor> {
        let ScopedRequest { scope, collection, request } = &self.scoped;
        Ok(request.find(scope, collection)?.named(collection))
    }

    /// Counts the documents instead of returning them, after skip and limit. The projection is ignored.
    pub fn count(self) -> Count {
        Count { scoped: self.scoped }
    }

    /// Returns the distinct values at `path` instead of the documents, in BSON's order. Each element of an array is a
    /// value. If values compare equal (1 and 1.0), only the value of the document with the lowest `_id` is returned.
    ///
    /// Sort, skip and limit then apply to the values: the sort is by `path` itself, 1 or -1. The projection is ignored.
    pub fn distinct(self, path: &str) -> Distinct {
        Distinct { scoped: self.scoped, path: path.into() }
    }

    /// Returns the query's plan; with [`ExplainVerbosity::ExecutionStats`] also executes it, drops the documents, and
    /// returns what each node did: rows, keys, documents, bytes, temporary files, time.
    ///
    /// ```
    /// # let db = slate_core::Database::open("memory:")?;
    /// use bson::{doc, rawdoc};
    /// use slate_core::ExplainVerbosity;
    ///
    /// let users = db.collection("users");
    /// users.insert_many(&[rawdoc! { "age": 36 }, rawdoc! { "age": 17 }]).run()?;
    /// let adults = users.find(doc! { "age": { "$gte": 21 } }).sort(doc! { "age": 1 });
    /// let explained = adults.explain(ExplainVerbosity::ExecutionStats)?;
    /// println!("{explained}");
    /// let stats = explained.execution_stats().unwrap_or_default();
    /// assert_eq!((stats.rows, stats.documents_examined), (1, 2));
    /// # Ok::<(), slate_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fails as [`Find::cursor`] does, or if executing fails.
    pub fn explain(self, verbosity: ExplainVerbosity) -> Result<Explain> {
        let ScopedRequest { scope, collection, request } = &self.scoped;
        request.explain(scope, collection, verbosity, Request::parse_find)
    }
}

impl<T: DeserializeOwned + Any> Find<T> {
    /// Runs the query and updates its result: the first steps add its rows, and later ones are the changes by commits. Changes must be
    /// [logged](crate::Database::enable_changes). Rows with equal sort keys, and all rows without a sort, are in the order of `_id`.
    ///
    /// Changed documents are tested by the filter. The query is executed again only if a limited result loses a row, if there are very many changes,
    /// or if the log or the collection is gone.
    ///
    /// ```
    /// # use slate_core::{ChangeLog, Database, bson::{Document, doc}};
    /// let db = Database::open("memory:")?;
    /// db.enable_changes(ChangeLog::new())?;
    /// let scores = db.collection::<Document>("scores");
    /// scores.insert_many(&[doc! { "_id": "Ada", "points": 3 }, doc! { "_id": "Bob", "points": 5 }]).run()?;
    /// let mut best = scores.find(doc! {}).sort(doc! { "points": -1 }).limit(1).live()?;
    /// let mut rows = Vec::new();
    /// best.next().unwrap()?.apply(&mut rows);
    /// assert_eq!(rows, [doc! { "_id": "Bob", "points": 5 }]);
    /// scores.update_one(doc! { "_id": "Ada" }, doc! { "$inc": { "points": 3 } }).run()?;
    /// for _ in 0..2 {
    ///     best.next().unwrap()?.apply(&mut rows);                             // Bob leaves, Ada comes
    /// }
    /// assert_eq!(rows, [doc! { "_id": "Ada", "points": 6 }]);
    /// # Ok::<(), slate_core::Error>(())
    /// ```
    ///
    /// Cost: the documents of the result are held in memory; each change costs a search in them.
    ///
    /// # Errors
    /// Code 40573 if changes are not logged; 72 for a skip or a projection; 166 for a view; otherwise as [`Find::run`].
    pub fn live(self) -> Result<LiveQuery<T>> {
        let (state, call, collection) = self.open_live()?;
        Ok(LiveQuery::new(Following::new(state, call), collection))
    }

    /// Opens a live query; returns it with the limits of its reads.
    pub(crate) fn open_live(self) -> Result<(LiveState, CallContext, Arc<str>)> {
        let ScopedRequest { scope, collection, request } = self.scoped;
        let call = request.call.clone();
        let state = LiveState::open(scope.database("a live query")?, &collection, request)?;
        Ok((state, call, collection))
    }

    /// Runs the query; the iterator returns each document as `T`.
    ///
    /// # Errors
    /// Fails as [`Find::cursor`] does.
    pub fn run(self) -> Result<Documents<T>> {
        Ok(Documents::new(self.cursor()?))
    }

    /// Runs the query and returns all documents at once.
    ///
    /// # Errors
    /// Fails as [`Find::cursor`] does, or if a document is not a `T`.
    pub fn collect(self) -> Result<Vec<T>> {
        self.run()?.collect()
    }

    /// Returns the first document, `None` if there is none.
    ///
    /// # Errors
    /// Fails as [`Find::cursor`] does.
    pub fn first(self) -> Result<Option<T>> {
        let mut cursor = self.limit(1).cursor()?;
        if cursor.advance()? { cursor.read_current().transpose() } else { Ok(None) }
    }
}

impl Count {
    setters! { scoped.request: skip, limit, collation, hint, force; scoped.request.call: deadline, cancel, memory_limit }

    /// Runs the query and returns the number of documents.
    ///
    /// # Errors
    /// Fails as [`Find::cursor`] does.
    pub fn run(self) -> Result<u64> {
        let ScopedRequest { scope, collection, request } = &self.scoped;
        request.count(scope, collection)
    }

    /// Returns the count's plan, as [`Find::explain`] does.
    ///
    /// # Errors
    /// Fails as [`Find::explain`] does.
    pub fn explain(self, verbosity: ExplainVerbosity) -> Result<Explain> {
        let ScopedRequest { scope, collection, request } = &self.scoped;
        request.explain(scope, collection, verbosity, Request::parse_count)
    }
}

impl Distinct {
    setters! { scoped.request: sort, skip, limit, collation, hint, force; scoped.request.call: deadline, cancel, memory_limit }

    /// Collects the values.
    ///
    /// # Errors
    /// Fails as [`Find::cursor`] does.
    pub fn run(self) -> Result<Vec<Bson>> {
        let ScopedRequest { scope, collection, request } = &self.scoped;
        let mut values = Vec::new();
        request.distinct(scope, collection, &self.path, |value| values.extend(value.to_bson()))?;
        Ok(values)
    }

    /// Collects the values as `T`.
    ///
    /// ```
    /// # let db = slate_core::Database::open("memory:")?;
    /// use bson::{doc, rawdoc};
    ///
    /// let users = db.collection("users");
    /// users.insert_many(&[rawdoc! { "tags": ["vip", "new"] }, rawdoc! { "tags": ["vip"] }]).run()?;
    /// let tags: Vec<String> = users.distinct("tags", doc! {}).run_as()?;
    /// assert_eq!(tags, ["new", "vip"]);
    /// # Ok::<(), slate_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fails as [`Find::cursor`] does; with [`ErrorKind::Conversion`](crate::ErrorKind::Conversion) for the first value
    /// that is not a `T`.
    pub fn run_as<T: DeserializeOwned>(self) -> Result<Vec<T>> {
        let ScopedRequest { scope, collection, request } = &self.scoped;
        let mut values = Vec::new();
        let mut fault = None;
        request.distinct(scope, collection, &self.path, |value| match deserialize_value(value) {
            Ok(value) => values.push(value),
            Err(error) => {
                fault.get_or_insert(error);
            }
        })?;
        fault.map_or(Ok(values), |error| Err(Error::value_not_convertible(collection, &self.path, error)))
    }

    /// Returns the plan, as [`Find::explain`] does.
    ///
    /// # Errors
    /// Fails as [`Find::explain`] does.
    pub fn explain(self, verbosity: ExplainVerbosity) -> Result<Explain> {
        let ScopedRequest { scope, collection, request } = &self.scoped;
        request.explain(scope, collection, verbosity, |request, defined| request.parse_distinct(defined, &self.path))
    }
}

crate::debug::cloned! { Find { scoped, documents } }

impl<T> fmt::Debug for Find<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.scoped.fmt(f)
    }
}

impl fmt::Debug for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.scoped.fmt(f)
    }
}

impl fmt::Debug for Distinct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "distinct {} of ", self.path)?;
        self.scoped.fmt(f)
    }
}

impl Cursor {
    /// Moves to the next document; returns `false` after the last.
    ///
    /// # Errors
    /// Fails if the storage fails; with [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted).
    pub fn advance(&mut self) -> Result<bool> {
        Rows::advance(self)
    }

    /// Returns the current document, lent until the next move; `None` before the first and after the last.
    pub fn current(&self) -> Option<Row<'_>> {
        self.document().and_then(|document| as_raw(document.bytes()).ok()).map(Row::from)
    }

    /// Deserializes the current document into a type that may borrow from it.
    ///
    /// # Errors
    /// [`ErrorKind::Conversion`](crate::ErrorKind::Conversion) if the document is not an `R`, or there is no current
    /// document.
    pub fn deserialize_current<'c, R: Deserialize<'c>>(&'c self) -> Result<R> {
        let document = self.document();
        self.decoding(document, || deserialize_current(self.collection(), document))
    }

    /// Stops the clock of the query until the cursor moves again: [metrics](crate::Metrics) and reports of slow queries
    /// do not include this time. For callers that wait between two documents, for example for a client.
    pub fn pause(&mut self) {
        Rows::pause(self);
    }

    /// Returns the current document as `T`.
    pub(crate) fn read_current<T: DeserializeOwned + Any>(&self) -> Option<Result<T>> {
        self.document().map(|document| self.decoding(Some(document), || from_raw(self.collection(), document)))
    }
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor").field("current", &self.current()).finish()
    }
}

/// Deserializes a cursor's document. Fails for `None`.
pub(crate) fn deserialize_current<'c, R: Deserialize<'c>>(collection: &str, current: Option<Doc<'c>>) -> Result<R> {
    let document = current.ok_or_else(|| Error::conversion(NoDocument))?;
    deserialize(document).map_err(|error| Error::not_convertible(collection, document, error))
}

#[derive(Debug, thiserror::Error)]
#[error("the cursor has no current document")]
struct NoDocument;

/// Iterates over the documents of a query as `T`; ends after the first error.
pub struct Documents<T> {
    cursor: Option<Cursor>,
    documents: As<T>,
}

impl<T> Documents<T> {
    pub(crate) fn new(cursor: Cursor) -> Self {
        Self { cursor: Some(cursor), documents: std::marker::PhantomData }
    }
}

impl<T: DeserializeOwned + Any> Iterator for Documents<T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        let cursor = self.cursor.as_mut()?;
        let moved = cursor.advance();
        match moved {
            Ok(true) => cursor.read_current(),
            Ok(false) => {
                self.cursor = None;
                None
            }
            Err(error) => {
                self.cursor = None;
                Some(Err(error))
            }
        }
    }
}

crate::debug::shown! { self: Documents<T> {} }
