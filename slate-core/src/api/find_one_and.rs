use std::{any::Any, marker::PhantomData};

use serde::de::DeserializeOwned;
use slate_query::{
    Code,
    filter::{Filter, Ties},
    projection::Projection,
    raw::Doc,
};

use crate::{
    Error, IntoUpdate, Result, ReturnDocument,
    api::{delete::delete_request, setters::setters, update::Change},
    call::{Request, Scope, ScopedRequest, Writer},
    document::{As, from_raw},
    exec::Target,
    write::{DeleteRequest, Shows, UpdateKind, UpdateOutcome, UpdateRequest},
};

/// An update of one document that returns it; see
/// [`Collection::find_one_and_update`](crate::Collection::find_one_and_update).
#[must_use = "nothing is updated until `run`"]
pub struct FindOneAndUpdate<T> {
    pub(crate) scoped: ScopedRequest,
    change: Change,
    documents: As<T>,
}

/// A deletion of one document that returns it; see
/// [`Collection::find_one_and_delete`](crate::Collection::find_one_and_delete).
#[must_use = "nothing is deleted until `run`"]
pub struct FindOneAndDelete<T> {
    pub(crate) scoped: ScopedRequest,
    documents: As<T>,
}

impl<T: DeserializeOwned + Any> FindOneAndUpdate<T> {
    pub(crate) fn new(mut scoped: ScopedRequest, update: impl IntoUpdate, kind: UpdateKind) -> Self {
        let change = Change::new(&mut scoped.request, update, kind);
        Self { scoped, change, documents: PhantomData }
    }

    setters! {
        scoped.request: upsert, array_filters, return_document, sort, projection, hint, let_variables, collation, force;
        scoped.request.call: deadline, cancel, memory_limit, bypass_document_validation, bypass_empty_ts_replacement
    }

    /// Runs the update and returns the document. `None` if none matched, unless an upsert returns the inserted one ([`ReturnDocument::After`]).
    ///
    /// # Errors
    /// Fails as [`Update::run`](crate::Update::run) does; also if the document is not a `T`, but then the update is done.
    pub fn run(self) -> Result<Option<T>> {
        let ScopedRequest { scope, collection, request } = &self.scoped;
        let (_, document) = update_one(scope, collection, request, &self.change)?;
        document.map(|document| from_raw(collection, Doc::new(&document))).transpose()
    }
}

impl<T: DeserializeOwned + Any> FindOneAndDelete<T> {
    pub(crate) fn new(scoped: ScopedRequest) -> Self {
        Self { scoped, documents: PhantomData }
    }

    setters! { scoped.request: sort, projection, hint, let_variables, collation, force; scoped.request.call: deadline, cancel, memory_limit }

    /// Runs the deletion and returns the document; `None` if none matched.
    ///
    /// # Errors
    /// Fails as [`Delete::run`](crate::Delete::run) does; also if the document is not a `T`, but then it is deleted.
    pub fn run(self) -> Result<Option<T>> {
        let ScopedRequest { scope, collection, request } = &self.scoped;
        let document = delete_one(scope, collection, request)?;
        document.map(|document| from_raw(collection, Doc::new(&document))).transpose()
    }
}

/// Updates the first document that matches; returns the outcome and the projected document, before or after the change.
pub(crate) fn update_one(
    scope: &Scope,
    collection: &str,
    request: &Request,
    change: &Change,
) -> Result<(UpdateOutcome, Option<Vec<u8>>)> {
    scope.write(&request.call, |writer| {
        let defined = request.bind(writer.catalog(), collection)?;
        let projection = request.parse_projection(&defined)?;
        if request.update.returns == ReturnDocument::After
            && projection.as_ref().is_some_and(Projection::needs_position)
        {
            let message = "the positional projection '$' has no meaning for the document after its update";
            return Err(Error::invalid(Code::BAD_VALUE, message));
        }
        let update =
            UpdateRequest { shows: Some(request.update.returns), ..change.parse(request, &defined, Target::One)? };
        let mut outcome = writer.update(collection, &update, &request.call)?;
        let shown = outcome.shown.take().map(|document| shape(document, projection.as_ref(), &update.query.filter));
        Ok((outcome, shown_or_undone(writer, shown.transpose())?))
    })
}

/// Deletes the first document that matches; returns it, projected.
pub(crate) fn delete_one(scope: &Scope, collection: &str, request: &Request) -> Result<Option<Vec<u8>>> {
    scope.write(&request.call, |writer| {
        let defined = request.bind(writer.catalog(), collection)?;
        let projection = request.parse_projection(&defined)?;
        let deletion = DeleteRequest { shows: Shows::Deleted, ..delete_request(request, &defined, Target::One)? };
        let outcome = writer.delete(collection, &deletion, &request.call)?;
        let shown = outcome.shown.map(|document| shape(document, projection.as_ref(), &deletion.query.filter));
        shown_or_undone(writer, shown.transpose())
    })
}

/// Ends the transaction if the projection failed, because the document is already changed in it.
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
    let position = if projection.needs_position() { filter.positional(document, Ties::Last).flatten() } else { None };
    let mut shaped = Vec::new();
    projection.apply(document, position, &mut shaped)?;
    Ok(shaped)
}

crate::debug::cloned! { FindOneAndUpdate { scoped, change, documents } }

crate::debug::cloned! { FindOneAndDelete { scoped, documents } }

crate::debug::shown! { self: FindOneAndUpdate<T> { scoped: self.scoped } }

crate::debug::shown! { self: FindOneAndDelete<T> { scoped: self.scoped } }
