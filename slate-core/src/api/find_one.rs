use std::any::Any;

use serde::de::DeserializeOwned;
use slate_query::raw::Doc;

use crate::{Explain, ExplainVerbosity, Find, Result, api::setters::setters, call::ScopedRequest, document::from_raw};

/// A query for one document; see [`ReadCollection::find_one`](crate::ReadCollection::find_one).
#[must_use = "nothing is read until `run` or `explain`"]
pub struct FindOne<T> {
    /// The query with the limit 1.
    pub(crate) find: Find<T>,
}

impl<T> FindOne<T> {
    pub(crate) fn new(scoped: ScopedRequest) -> Self {
        Self { find: Find::new(scoped).limit(1) }
    }

    setters! {
        find.scoped.request: sort, projection, skip, hint, let_variables, collation, force;
        find.scoped.request.call: deadline, cancel, memory_limit, allow_disk_use
    }

    /// Returns the query's plan, as [`Find::explain`] does.
    ///
    /// # Errors
    /// Fails as [`Find::explain`] does.
    pub fn explain(self, verbosity: ExplainVerbosity) -> Result<Explain> {
        self.find.explain(verbosity)
    }
}

impl<T: DeserializeOwned + Any> FindOne<T> {
    /// Runs the query and returns the document; `None` if no more documents match than [`FindOne::skip`] skips.
    ///
    /// # Errors
    /// Fails as [`Find::cursor`] does, or if the document is not a `T`.
    pub fn run(self) -> Result<Option<T>> {
        let ScopedRequest { scope, collection, request } = &self.find.scoped;
        let mut found = None;
        let visitor = &mut |document: Doc<'_>| {
            found = Some(from_raw(collection, document)?);
            Ok(())
        };
        if request.look_up(scope, collection, visitor)? { Ok(found) } else { self.find.first() }
    }
}

crate::debug::cloned! { FindOne { find } }

crate::debug::shown! { self: FindOne<T> { find: self.find } }
