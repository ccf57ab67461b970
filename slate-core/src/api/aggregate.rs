use std::{any::Any, marker::PhantomData};

use serde::de::DeserializeOwned;

use crate::{
    Cursor, Documents, Explain, ExplainVerbosity, IntoDocument, Result,
    api::setters::setters,
    call::{Request, ScopedRequest},
    document::As,
};

/// An aggregation; see [`ReadCollection::aggregate`](crate::ReadCollection::aggregate) and
/// [`Database::aggregate`](crate::Database::aggregate).
#[must_use = "nothing is read until `run`, `cursor`, `first` or `explain`"]
pub struct Aggregate<T> {
    pub(crate) scoped: ScopedRequest,
    documents: As<T>,
}

/// The collection name of an aggregation that reads none, as in MongoDB. No collection can have this name.
pub(crate) const NO_COLLECTION: &str = "$cmd.aggregate";

impl<T> Aggregate<T> {
    /// Creates an aggregation; the names of collections in its stages are those of `database`.
    pub(crate) fn new(
        mut scoped: ScopedRequest,
        database: &str,
        pipeline: impl IntoIterator<Item = impl IntoDocument>,
    ) -> Self {
        scoped.request.pipeline(pipeline);
        scoped.request.name_collections(database);
        Self { scoped, documents: PhantomData }
    }

    setters! { scoped.request: hint, let_variables, collation, force; scoped.request.call: deadline, cancel, memory_limit, allow_disk_use, bypass_document_validation }

    /// Executes every stage as written, on all documents of the collection.
    #[cfg(feature = "unstable-testing")]
    pub fn unoptimized(mut self) -> Self {
        self.scoped.request.unoptimized();
        self
    }

    /// Reads the resulting documents as another type.
    pub fn with_type<U>(self) -> Aggregate<U> {
        Aggregate { scoped: self.scoped, documents: PhantomData }
    }

    /// Opens a cursor that lends each resulting document without copying it. A pipeline that ends with `$out` or `$merge` is
    /// executed here, in one transaction, and has no results.
    ///
    /// # Errors
    /// Fails if the pipeline is not valid, with MongoDB's code and the stage or path at fault; if the storage fails.
    pub fn cursor(self) -> Result<Cursor> {
        let ScopedRequest { scope, collection, request } = &self.scoped;
        Ok(request.aggregate(scope, collection)?.named(collection))
    }

    /// Returns the pipeline's plan, as [`Find::explain`](crate::Find::explain) does: leading stages are part of the query
    /// that indexes can serve, the others are drawn above it. Nothing is written: `$out` and `$merge` are not drawn.
    ///
    /// # Errors
    /// Fails as [`Aggregate::cursor`] does, or if executing fails.
    pub fn explain(self, verbosity: ExplainVerbosity) -> Result<Explain> {
        let ScopedRequest { scope, collection, request } = &self.scoped;
        request.explain(scope, collection, verbosity, Request::parse_pipeline)
    }
}

impl<T: DeserializeOwned + Any> Aggregate<T> {
    /// Runs the pipeline; the iterator returns each resulting document as `T`.
    ///
    /// # Errors
    /// Fails as [`Aggregate::cursor`] does.
    pub fn run(self) -> Result<Documents<T>> {
        Ok(Documents::new(self.cursor()?))
    }

    /// Runs the pipeline and returns all resulting documents at once.
    ///
    /// # Errors
    /// Fails as [`Aggregate::cursor`] does, or if a document is not a `T`.
    pub fn collect(self) -> Result<Vec<T>> {
        self.run()?.collect()
    }

    /// Returns the first resulting document, `None` if there is none.
    ///
    /// # Errors
    /// Fails as [`Aggregate::cursor`] does.
    pub fn first(self) -> Result<Option<T>> {
        self.run()?.next().transpose()
    }
}

crate::debug::cloned! { Aggregate { scoped, documents } }

crate::debug::shown! { self: Aggregate<T> { scoped: self.scoped } }
