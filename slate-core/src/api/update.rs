use std::{sync::Arc, time::Duration};

use bson::{Bson, RawDocumentBuf};
use slate_query::raw::{Kind, OwnedValue, Value};

use crate::{
    CancelToken, Hint, IntoDocument, Result,
    exec::Target,
    operation::request::{Request, setters},
    operation::scope::Scope,
    plan::{Output, Ties},
    write::{IfNone, UpdateKind, UpdateRequest},
};

/// An update of one or many documents; see [`Collection::update_many`](crate::Collection::update_many).
#[derive(Clone)]
#[must_use = "nothing is updated until `run`"]
pub struct Update {
    scope: Scope,
    collection: Arc<str>,
    request: Request,
    change: Change,
    target: Target,
}

/// What an update does to a document, as the caller gave it.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) update: OwnedValue,
    pub(crate) array_filters: Vec<RawDocumentBuf>,
    pub(crate) if_none: IfNone,
    pub(crate) kind: UpdateKind,
}

impl Change {
    pub(crate) fn new(request: &mut Request, update: impl IntoDocument, kind: UpdateKind) -> Self {
        let update = request.take(update).unwrap_or_default();
        let update = Value::new(Kind::Document, update.as_bytes()).to_owned();
        Self { update, array_filters: Vec::new(), if_none: IfNone::Nothing, kind }
    }

    pub(crate) fn array_filters<F: IntoDocument>(
        &mut self,
        request: &mut Request,
        filters: impl IntoIterator<Item = F>,
    ) {
        self.array_filters = filters.into_iter().filter_map(|filter| request.take(filter)).collect();
    }

    /// Parses the update of a question.
    pub(crate) fn parse(&self, request: &Request, target: Target) -> Result<UpdateRequest> {
        request.check()?;
        let mut query = request.parse(Output::Whole, Ties::ById)?;
        if target == Target::One && query.order().is_some() {
            query.limit = Some(1);
        }
        UpdateRequest::parse(query, self.update.as_value(), &self.array_filters, self.kind, target, self.if_none)
    }
}

/// What an update did.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct UpdateResult {
    /// How many documents matched.
    pub matched: u64,
    /// How many of them changed.
    pub modified: u64,
    /// The `_id` of the document that was inserted because none matched.
    pub upserted_id: Option<Bson>,
}

impl Update {
    pub(crate) fn new(
        scope: Scope,
        collection: &Arc<str>,
        filter: impl IntoDocument,
        update: impl IntoDocument,
        target: Target,
        kind: UpdateKind,
    ) -> Self {
        let mut request = Request::new(filter);
        let change = Change::new(&mut request, update, kind);
        Self { scope, collection: Arc::clone(collection), request, change, target }
    }

    /// Where no document matches, inserts one made of the filter's equalities and the update.
    pub fn upsert(mut self) -> Self {
        self.change.if_none = IfNone::Upsert;
        self
    }

    /// Conditions on array elements, for `$[name]` in the update's paths.
    pub fn array_filters<F: IntoDocument>(mut self, filters: impl IntoIterator<Item = F>) -> Self {
        self.change.array_filters(&mut self.request, filters);
        self
    }

    setters! {
        /// Of one document: the first in this order instead of that of `_id`.
        sort(sort: impl IntoDocument);
        /// Takes this index instead of what the planner would choose.
        hint(hint: Hint);
        /// Ends, with nothing changed, when it is not done within this time from now.
        deadline(within: Duration);
        /// Ends, with nothing changed, when the token is cancelled.
        cancel(token: CancelToken);
        /// Holds rows in at most so many bytes of memory; the rest goes to temporary files. The default is the database's, see
        /// [`DatabaseBuilder::memory_limit`](crate::DatabaseBuilder::memory_limit).
        memory_limit(bytes: usize);
        /// Takes the candidate plan of this number: for tests that compare them all.
        #[doc(hidden)]
        force(candidate: usize);
    }

    /// Runs the update: all of it or nothing.
    ///
    /// # Errors
    /// An update that is not valid, with MongoDB's code and the path at fault;
    /// [`ErrorKind::DuplicateKey`](crate::ErrorKind::DuplicateKey) where it breaks a unique index.
    pub fn run(self) -> Result<UpdateResult> {
        let update = self.change.parse(&self.request, self.target)?;
        let outcome = self.scope.write(|writer| writer.update(&self.collection, &update, &self.request.interrupt))?;
        Ok(UpdateResult {
            matched: outcome.matched,
            modified: outcome.modified,
            upserted_id: outcome.upserted.and_then(|id| id.as_value().to_bson()),
        })
    }
}

impl std::fmt::Debug for Update {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Update").field("collection", &self.collection).field("change", &self.change).finish()
    }
}
