use std::{any::Any, marker::PhantomData, sync::Arc, time::Duration};

use serde::de::DeserializeOwned;
use slate_query::{Code, filter::Filter, projection::Projection, raw::Doc};

use crate::{
    CancelToken, Error, Hint, IntoDocument, Result, ReturnDocument,
    api::delete::delete_request,
    api::document::As,
    api::document::from_raw,
    api::update::Change,
    engine::Writer,
    exec::Target,
    operation::request::{Request, setters},
    operation::{scope::Scope, write_op::WriteOp},
    write::{DeleteOutcome, DeleteRequest, IfNone, Shows, UpdateKind, UpdateOutcome, UpdateRequest},
};

/// An update of one document that returns it; see
/// [`Collection::find_one_and_update`](crate::Collection::find_one_and_update).
#[must_use = "nothing is updated until `run`"]
pub struct FindOneAndUpdate<T> {
    scope: Scope,
    collection: Arc<str>,
    request: Request,
    change: Change,
    returns: ReturnDocument,
    documents: As<T>,
}

/// A deletion of one document that returns it; see
/// [`Collection::find_one_and_delete`](crate::Collection::find_one_and_delete).
#[must_use = "nothing is deleted until `run`"]
pub struct FindOneAndDelete<T> {
    scope: Scope,
    collection: Arc<str>,
    request: Request,
    documents: As<T>,
}

/// The options of both builders.
macro_rules! common {
    () => {
        setters! {
            /// Chooses the first document in this order instead of by `_id`.
            sort(sort: impl IntoDocument);
            /// Returns only some fields of the document.
            projection(projection: impl IntoDocument);
            /// Uses this index, whatever the planner would choose.
            hint(hint: Hint);
            /// Fails, with nothing changed, if it does not end within this time from now.
            deadline(within: Duration);
            /// Fails, with nothing changed, when the token is cancelled.
            cancel(token: CancelToken);
            /// Holds rows in at most this many bytes of memory and the rest in temporary files. The default is the
            /// database's, see [`DatabaseBuilder::memory_limit`](crate::DatabaseBuilder::memory_limit).
            memory_limit(bytes: usize);
            /// Uses the candidate access path with this number, counted from 0; see [`Explain::candidates`](crate::Explain::candidates).
            #[cfg(feature = "unstable-testing")]
            force(candidate: usize);
        }
    };
}

impl<T: DeserializeOwned + Any> FindOneAndUpdate<T> {
    pub(crate) fn new(
        scope: Scope,
        collection: &Arc<str>,
        filter: impl IntoDocument,
        update: impl IntoDocument,
        kind: UpdateKind,
    ) -> Self {
        let mut request = Request::new(filter);
        let change = Change::new(&mut request, update, kind);
        let returns = ReturnDocument::default();
        Self { scope, collection: Arc::clone(collection), request, change, returns, documents: PhantomData }
    }

    common!();

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

    /// Chooses whether to return the document before the change (the default) or after it.
    pub fn return_document(mut self, returns: ReturnDocument) -> Self {
        self.returns = returns;
        self
    }

    /// Runs the update and returns the document; `None` if none matched.
    ///
    /// # Errors
    /// As [`Update::run`](crate::Update::run).
    pub fn run(self) -> Result<Option<T>> {
        let (_, document) = update_one(&self.scope, &self.collection, &self.request, &self.change, self.returns)?;
        document.map(|document| from_raw(&document)).transpose()
    }
}

impl<T: DeserializeOwned + Any> FindOneAndDelete<T> {
    pub(crate) fn new(scope: Scope, collection: &Arc<str>, filter: impl IntoDocument) -> Self {
        Self { scope, collection: Arc::clone(collection), request: Request::new(filter), documents: PhantomData }
    }

    common!();

    /// Runs the deletion and returns the document; `None` if none matched.
    ///
    /// # Errors
    /// As [`Delete::run`](crate::Delete::run).
    pub fn run(self) -> Result<Option<T>> {
        let document = delete_one(&self.scope, &self.collection, &self.request)?;
        document.map(|document| from_raw(&document)).transpose()
    }
}

/// Updates the first document that matches; returns the outcome and the projected document, before or after the change.
pub(crate) fn update_one(
    scope: &Scope,
    collection: &str,
    request: &Request,
    change: &Change,
    returns: ReturnDocument,
) -> Result<(UpdateOutcome, Option<Vec<u8>>)> {
    let projection = request.parse_projection()?;
    if returns == ReturnDocument::After && projection.as_ref().is_some_and(Projection::needs_position) {
        let message = "the positional projection '$' has no meaning for the document after its update";
        return Err(Error::invalid(Code::BAD_VALUE, message));
    }
    let update = UpdateRequest { shows: Some(returns), ..change.parse(request, Target::One)? };
    scope.write(|writer| {
        let mut outcome = writer.run::<UpdateOutcome>(WriteOp::Update {
            collection,
            request: &update,
            interrupt: &request.interrupt,
        })?;
        let shown =
            outcome.shown.take().map(|document| shape(document, projection.as_ref(), &update.query.filter)).transpose();
        Ok((outcome, shown_or_undone(writer, shown)?))
    })
}

/// Deletes the first document that matches; returns it, projected.
pub(crate) fn delete_one(scope: &Scope, collection: &str, request: &Request) -> Result<Option<Vec<u8>>> {
    let projection = request.parse_projection()?;
    let deletion = DeleteRequest { shows: Shows::Deleted, ..delete_request(request, Target::One)? };
    scope.write(|writer| {
        let outcome = writer.run::<DeleteOutcome>(WriteOp::Delete {
            collection,
            request: &deletion,
            interrupt: &request.interrupt,
        })?;
        let shown = outcome.shown.map(|document| shape(document, projection.as_ref(), &deletion.query.filter));
        shown_or_undone(writer, shown.transpose())
    })
}

/// Ends the transaction if the projection fails: the document is already changed in it.
fn shown_or_undone<D>(writer: &mut dyn Writer, shown: Result<D>) -> Result<D> {
    if let Err(error) = &shown {
        writer.end(&format!("a document that it changed could not be projected: {error}"));
    }
    shown
}

/// Applies the projection to a document.
fn shape(document: Vec<u8>, projection: Option<&Projection>, filter: &Filter) -> Result<Vec<u8>> {
    let Some(projection) = projection else { return Ok(document) };
    let document = Doc::new(&document);
    let position = if projection.needs_position() { filter.positional(document).flatten() } else { None };
    let mut shaped = Vec::new();
    projection.apply(document, position, &mut shaped)?;
    Ok(shaped)
}

impl<T> std::fmt::Debug for FindOneAndUpdate<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FindOneAndUpdate").field("collection", &self.collection).finish_non_exhaustive()
    }
}

impl<T> std::fmt::Debug for FindOneAndDelete<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FindOneAndDelete").field("collection", &self.collection).finish_non_exhaustive()
    }
}
