use std::{sync::Arc, time::Duration};

use bson::{Bson, RawDocumentBuf};
use slate_query::raw::{Kind, OwnedValue, Value};

use crate::{
    CancelToken, Explain, ExplainVerbosity, Hint, IntoDocument, Result,
    exec::Target,
    operation::request::{Request, setters},
    operation::{scope::Scope, write_op::WriteOp},
    plan::{Output, Query, Ties},
    write::{IfNone, UpdateKind, UpdateOutcome, UpdateRequest},
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

/// The change that an update makes, before parsing.
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

    /// Parses the update and the query for its targets.
    pub(crate) fn parse(&self, request: &Request, target: Target) -> Result<UpdateRequest> {
        request.check()?;
        let mut query = request.parse(Output::Whole, Ties::ById)?;
        if target == Target::One && query.order().is_some() {
            query.limit = Some(1);
        }
        UpdateRequest::parse(query, self.update.as_value(), &self.array_filters, self.kind, target, self.if_none)
    }
}

/// The result of an [`Update`].
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct UpdateResult {
    /// Number of documents that matched.
    pub matched: u64,
    /// Number of matched documents that changed.
    pub modified: u64,
    /// The `_id` of the document that an upsert inserted.
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

    /// If no document matches, inserts one made of the filter's equalities and the update.
    pub fn upsert(mut self) -> Self {
        self.change.if_none = IfNone::Upsert;
        self
    }

    /// Sets the conditions on array elements for `$[name]` in the update's paths.
    pub fn array_filters<F: IntoDocument>(mut self, filters: impl IntoIterator<Item = F>) -> Self {
        self.change.array_filters(&mut self.request, filters);
        self
    }

    setters! {
        /// Chooses the document of `update_one` by this order instead of by `_id`.
        sort(sort: impl IntoDocument);
        /// Uses this index, whatever the planner would choose.
        hint(hint: Hint);
        /// Fails, with nothing changed, if it does not end within this time from now.
        deadline(within: Duration);
        /// Fails, with nothing changed, when the token is cancelled.
        cancel(token: CancelToken);
        /// Holds rows in at most this many bytes of memory and the rest in temporary files. The default is the database's, see
        /// [`DatabaseBuilder::memory_limit`](crate::DatabaseBuilder::memory_limit).
        memory_limit(bytes: usize);
        /// Uses the candidate access path with this number, counted from 0; see [`Explain::candidates`](crate::Explain::candidates).
        #[cfg(feature = "unstable-testing")]
        force(candidate: usize);
    }

    /// Returns the plan of the query for the update's targets, as [`Find::explain`](crate::Find::explain) does. Nothing is
    /// updated, whatever the verbosity.
    ///
    /// # Errors
    /// As [`Update::run`] for an update that is not valid; if executing the query fails.
    pub fn explain(self, verbosity: ExplainVerbosity) -> Result<Explain> {
        let query = self.change.parse(&self.request, self.target)?.query;
        self.scope.explain(&self.collection, &target_query(query, self.target), verbosity, &self.request.interrupt)
    }

    /// Runs the update: all of it or nothing.
    ///
    /// # Errors
    /// Fails with MongoDB's code and the path at fault if the update is not valid; with
    /// [`ErrorKind::DuplicateKey`](crate::ErrorKind::DuplicateKey) if it violates a unique index.
    pub fn run(self) -> Result<UpdateResult> {
        let update = self.change.parse(&self.request, self.target)?;
        let outcome = self.scope.write(|writer| {
            let (collection, interrupt) = (&*self.collection, &self.request.interrupt);
            writer.run::<UpdateOutcome>(WriteOp::Update { collection, request: &update, interrupt })
        })?;
        Ok(UpdateResult {
            matched: outcome.matched,
            modified: outcome.modified,
            upserted_id: outcome.upserted.and_then(|id| id.as_value().to_bson()),
        })
    }
}

/// The query as it finds the targets: at most one for a write to one document.
pub(crate) fn target_query(mut query: Query, target: Target) -> Query {
    if target == Target::One {
        query.limit = Some(1);
    }
    query
}

impl std::fmt::Debug for Update {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Update").field("collection", &self.collection).field("change", &self.change).finish()
    }
}
