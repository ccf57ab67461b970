use std::{any::Any, sync::Arc, time::Duration};

use bson::Bson;
use serde::de::DeserializeOwned;

use crate::{
    CancelToken, Cursor, Documents, Explain, Hint, IntoDocument, Result,
    api::database::As,
    api::document::from_raw,
    api::explain::Verbosity,
    operation::request::{Request, setters},
    operation::scope::Scope,
    plan::Query,
};

/// A question to a collection; see [`ReadCollection::find`](crate::ReadCollection::find).
#[derive(Clone)]
#[must_use = "nothing is read until `run`, `cursor`, `count`, `distinct`, `first` or `explain`"]
pub struct Find<T> {
    scope: Scope,
    collection: Arc<str>,
    request: Request,
    documents: As<T>,
}

impl<T> Find<T> {
    pub(crate) fn new(scope: Scope, collection: &Arc<str>, filter: impl IntoDocument) -> Self {
        let request = Request::new(filter);
        Self { scope, collection: Arc::clone(collection), request, documents: std::marker::PhantomData }
    }

    setters! {
        /// Orders the documents by fields, each 1 (lowest first) or -1; `{ $natural: 1 }` is the order of `_id`.
        sort(sort: impl IntoDocument);
        /// Hands out only some fields of each document.
        project(projection: impl IntoDocument);
        /// Leaves out the first documents.
        skip(documents: u64);
        /// Hands out at most so many documents.
        limit(documents: u64);
        /// Takes this index, or the order of `_id`, instead of what the planner would choose.
        hint(hint: Hint);
        /// Ends with [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) when it is not done within this time from now.
        deadline(within: Duration);
        /// Ends with [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) when the token is cancelled.
        cancel(token: CancelToken);
        /// Holds rows in at most so many bytes of memory; the rest goes to temporary files. The default is the database's, see
        /// [`DatabaseBuilder::memory_limit`](crate::DatabaseBuilder::memory_limit).
        memory_limit(bytes: usize);
        /// Takes the candidate plan of this number: for tests that compare them all.
        #[doc(hidden)]
        force(candidate: usize);
    }

    /// Opens a cursor that lends each document where it lies: nothing is copied.
    ///
    /// # Errors
    /// A question that is not valid, with MongoDB's code and the path at fault; where the storage fails.
    pub fn cursor(self) -> Result<Cursor> {
        Ok(Cursor::new(self.request.find(&self.scope, &self.collection)?))
    }

    /// How many documents there are, after skip and limit.
    ///
    /// # Errors
    /// As [`Find::cursor`].
    pub fn count(self) -> Result<u64> {
        self.request.count(&self.scope, &self.collection)
    }

    /// The different values at `path` of the documents, in BSON's order; elements of arrays count one by one. Of values
    /// that compare equal (1 and 1.0), the one in the document first in the order of `_id` stands for all.
    ///
    /// Sort, skip and limit are about the values here: a sort by `path` itself, 1 or -1, and which of the values.
    ///
    /// # Errors
    /// As [`Find::cursor`].
    pub fn distinct(self, path: &str) -> Result<Vec<Bson>> {
        let mut values = Vec::new();
        self.request.distinct(&self.scope, &self.collection, path, |value| values.extend(value.to_bson()))?;
        Ok(values)
    }

    /// The plan that would be run, without running it.
    ///
    /// # Errors
    /// As [`Find::cursor`].
    pub fn explain(self) -> Result<Explain> {
        self.explained(&self.request.parse_find()?, Verbosity::QueryPlanner)
    }

    /// The plan of [`Find::count`], without running it.
    ///
    /// # Errors
    /// As [`Find::cursor`].
    pub fn explain_count(self) -> Result<Explain> {
        self.explained(&self.request.parse_count()?, Verbosity::QueryPlanner)
    }

    /// The plan of [`Find::distinct`], without running it.
    ///
    /// # Errors
    /// As [`Find::cursor`].
    pub fn explain_distinct(self, path: &str) -> Result<Explain> {
        self.explained(&self.request.parse_distinct(path)?, Verbosity::QueryPlanner)
    }

    /// Runs the question to its end, and tells what each node of its plan did: rows, keys, documents, bytes, temporary
    /// files, time. The documents are read and dropped. Looking at the clock for each row costs a part of the time told.
    ///
    /// ```
    /// # let db = slate_core::Database::open("memory:")?;
    /// use bson::{doc, rawdoc};
    ///
    /// let users = db.collection("users");
    /// users.insert_many(&[rawdoc! { "age": 36 }, rawdoc! { "age": 17 }])?;
    /// let explained = users.find(doc! { "age": { "$gte": 21 } }).sort(doc! { "age": 1 }).explain_analyze()?;
    /// println!("{explained}");
    /// let stats = explained.execution_stats().unwrap_or_default();
    /// assert_eq!((stats.rows, stats.documents_examined), (1, 2));
    /// # Ok::<(), slate_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Find::cursor`]; where running fails.
    pub fn explain_analyze(self) -> Result<Explain> {
        self.explained(&self.request.parse_find()?, Verbosity::ExecutionStats)
    }

    /// As [`Find::explain_analyze`], of [`Find::count`]. Its plan is run even where [`Find::count`] knows the answer
    /// without one: of a whole collection.
    ///
    /// # Errors
    /// As [`Find::explain_analyze`].
    pub fn explain_analyze_count(self) -> Result<Explain> {
        self.explained(&self.request.parse_count()?, Verbosity::ExecutionStats)
    }

    /// As [`Find::explain_analyze`], of [`Find::distinct`].
    ///
    /// # Errors
    /// As [`Find::explain_analyze`].
    pub fn explain_analyze_distinct(self, path: &str) -> Result<Explain> {
        self.explained(&self.request.parse_distinct(path)?, Verbosity::ExecutionStats)
    }

    fn explained(&self, query: &Query, verbosity: Verbosity) -> Result<Explain> {
        self.scope.explain(&self.collection, query, verbosity, &self.request.interrupt)
    }
}

impl<T: DeserializeOwned + Any> Find<T> {
    /// Runs the question; the iterator hands out each document as `T`.
    ///
    /// # Errors
    /// As [`Find::cursor`].
    pub fn run(self) -> Result<Documents<T>> {
        Ok(Documents::new(self.cursor()?))
    }

    /// The first document, if there is one.
    ///
    /// # Errors
    /// As [`Find::cursor`].
    pub fn first(self) -> Result<Option<T>> {
        let mut cursor = self.limit(1).cursor()?;
        Ok(if cursor.advance()? { cursor.bytes().map(from_raw).transpose()? } else { None })
    }
}

impl<T> std::fmt::Debug for Find<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Find").field("collection", &self.collection).field("request", &self.request).finish()
    }
}
