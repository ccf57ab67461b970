use crate::{
    Explain, ExplainVerbosity, Result,
    api::{setters::setters, update::target_query},
    call::{Definitions, Request, ScopedRequest},
    exec::Target,
    write::{DeleteRequest, Shows},
};

/// A deletion of one or many documents; see [`Collection::delete_many`](crate::Collection::delete_many).
#[derive(Clone, Debug)]
#[must_use = "nothing is deleted until `run`"]
pub struct Delete {
    pub(crate) scoped: ScopedRequest,
    target: Target,
}

impl Delete {
    pub(crate) fn new(scoped: ScopedRequest, target: Target) -> Self {
        Self { scoped, target }
    }

    setters! { scoped.request: hint, let_variables, collation, force; scoped.request.call: deadline, cancel, memory_limit }

    /// Returns the plan of the query for the deletion's targets, as [`Find::explain`](crate::Find::explain) does. Nothing is
    /// deleted with any verbosity.
    ///
    /// # Errors
    /// Fails as [`Delete::run`] does for a filter that is not valid, or if executing the query fails.
    pub fn explain(self, verbosity: ExplainVerbosity) -> Result<Explain> {
        let ScopedRequest { scope, collection, request } = &self.scoped;
        request.explain(scope, collection, verbosity, |request, defined| {
            Ok(target_query(request.parse_targets(defined, self.target)?, self.target))
        })
    }

    /// Runs the deletion, all of it or nothing; returns the number of deleted documents.
    ///
    /// # Errors
    /// Fails if the filter is not valid or the storage fails.
    pub fn run(self) -> Result<u64> {
        let Self { scoped: ScopedRequest { scope, collection, request }, target } = &self;
        let outcome = scope.write(&request.call, |writer| {
            let deletion = delete_request(request, &request.bind(writer.catalog(), collection)?, *target)?;
            writer.delete(collection, &deletion, &request.call)
        })?;
        Ok(outcome.deleted)
    }
}

/// Parses a deletion.
pub(crate) fn delete_request(request: &Request, defined: &Definitions<'_>, target: Target) -> Result<DeleteRequest> {
    Ok(DeleteRequest { query: request.parse_targets(defined, target)?, target, shows: Shows::Nothing })
}
