use bson::Bson;
use slate_query::raw::{Kind, OwnedValue, Value, Writer};

use crate::{
    Explain, ExplainVerbosity, IntoUpdate, Result, UpdateModifications,
    api::setters::setters,
    call::{Definitions, Request, ScopedRequest},
    exec::Target,
    plan::Query,
    write::{UpdateKind, UpdateRequest},
};

/// An update of one or many documents; see [`Collection::update_many`](crate::Collection::update_many).
#[derive(Clone, Debug)]
#[must_use = "nothing is updated until `run`"]
pub struct Update {
    pub(crate) scoped: ScopedRequest,
    change: Change,
    target: Target,
}

/// The change that an update makes, before parsing.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) update: OwnedValue,
    pub(crate) kind: UpdateKind,
}

impl Change {
    pub(crate) fn new(request: &mut Request, update: impl IntoUpdate, kind: UpdateKind) -> Self {
        let update = match request.accept(update.into_update()) {
            None => Value::NULL.to_owned(),
            Some(UpdateModifications::Operators(update)) => {
                let update = request.take(update).unwrap_or_default();
                Value::new(Kind::Document, update.as_bytes()).to_owned()
            }
            Some(UpdateModifications::Pipeline(stages)) => {
                let mut array = Writer::new();
                for (place, stage) in stages.into_iter().enumerate() {
                    let stage = request.take(stage).unwrap_or_default();
                    array.append(place.to_string().as_bytes(), Value::new(Kind::Document, stage.as_bytes()));
                }
                Value::new(Kind::Array, &array.finish()).to_owned()
            }
        };
        Self { update, kind }
    }

    /// Parses the update and the query for its targets.
    pub(crate) fn parse(&self, request: &Request, defined: &Definitions<'_>, target: Target) -> Result<UpdateRequest> {
        let query = request.parse_targets(defined, target)?;
        let update = request.parse_update(defined, self.update.as_value())?;
        UpdateRequest::new(query, update, self.kind, target, request.update.upsert)
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
    /// The `_id` of the document that an upsert inserted; `None` if none was inserted.
    pub upserted_id: Option<Bson>,
}

impl Update {
    pub(crate) fn new(mut scoped: ScopedRequest, update: impl IntoUpdate, target: Target, kind: UpdateKind) -> Self {
        let change = Change::new(&mut scoped.request, update, kind);
        Self { scoped, change, target }
    }

    setters! { scoped.request: upsert, array_filters, sort, hint, let_variables, collation, force; scoped.request.call: deadline, cancel, memory_limit, bypass_document_validation, bypass_empty_ts_replacement }

    /// Returns the plan of the query for the update's targets, as [`Find::explain`](crate::Find::explain) does. Nothing is
    /// updated with any verbosity.
    ///
    /// # Errors
    /// Fails as [`Update::run`] does for an update that is not valid, or if executing the query fails.
    pub fn explain(self, verbosity: ExplainVerbosity) -> Result<Explain> {
        let ScopedRequest { scope, collection, request } = &self.scoped;
        request.explain(scope, collection, verbosity, |request, defined| {
            Ok(target_query(self.change.parse(request, defined, self.target)?.query, self.target))
        })
    }

    /// Runs the update: all of it or nothing.
    ///
    /// # Errors
    /// Fails with MongoDB's code and the path at fault if the update is not valid; with
    /// [`ErrorKind::DuplicateKey`](crate::ErrorKind::DuplicateKey) if it violates a unique index.
    pub fn run(self) -> Result<UpdateResult> {
        let Self { scoped: ScopedRequest { scope, collection, request }, change, target } = &self;
        let outcome = scope.write(&request.call, |writer| {
            let update = change.parse(request, &request.bind(writer.catalog(), collection)?, *target)?;
            writer.update(collection, &update, &request.call)
        })?;
        Ok(UpdateResult {
            matched: outcome.matched,
            modified: outcome.modified,
            upserted_id: outcome.upserted.and_then(|id| id.as_value().to_bson()),
        })
    }
}

/// Returns the query that finds the targets, limited to one document for [`Target::One`].
pub(crate) fn target_query(mut query: Query, target: Target) -> Query {
    if target == Target::One {
        query.window.limit = Some(1);
    }
    query
}
