use std::{sync::Arc, time::Duration};

use crate::{
    CancelToken, Explain, ExplainVerbosity, Hint, IntoDocument, Result,
    api::update::target_query,
    exec::Target,
    operation::request::{Request, setters},
    operation::{scope::Scope, write_op::WriteOp},
    plan::{Output, Ties},
    write::{DeleteOutcome, DeleteRequest, Shows},
};

/// A deletion of one or many documents; see [`Collection::delete_many`](crate::Collection::delete_many).
#[derive(Clone)]
#[must_use = "nothing is deleted until `run`"]
pub struct Delete {
    scope: Scope,
    collection: Arc<str>,
    request: Request,
    target: Target,
}

impl Delete {
    pub(crate) fn new(scope: Scope, collection: &Arc<str>, filter: impl IntoDocument, target: Target) -> Self {
        Self { scope, collection: Arc::clone(collection), request: Request::new(filter), target }
    }

    setters! {
        /// Uses this index, whatever the planner would choose.
        hint(hint: Hint);
        /// Fails, with nothing deleted, if it does not end within this time from now.
        deadline(within: Duration);
        /// Fails, with nothing deleted, when the token is cancelled.
        cancel(token: CancelToken);
        /// Holds rows in at most this many bytes of memory and the rest in temporary files. The default is the database's, see
        /// [`DatabaseBuilder::memory_limit`](crate::DatabaseBuilder::memory_limit).
        memory_limit(bytes: usize);
        /// Uses the candidate access path with this number, counted from 0; see [`Explain::candidates`](crate::Explain::candidates).
        #[cfg(feature = "unstable-testing")]
        force(candidate: usize);
    }

    /// Returns the plan of the query for the deletion's targets, as [`Find::explain`](crate::Find::explain) does. Nothing is
    /// deleted, whatever the verbosity.
    ///
    /// # Errors
    /// As [`Delete::run`] for a filter that is not valid; if executing the query fails.
    pub fn explain(self, verbosity: ExplainVerbosity) -> Result<Explain> {
        let query = target_query(delete_request(&self.request, self.target)?.query, self.target);
        self.scope.explain(&self.collection, &query, verbosity, &self.request.interrupt)
    }

    /// Runs the deletion, all of it or nothing; returns the number of deleted documents.
    ///
    /// # Errors
    /// Fails if the filter is not valid or the storage fails.
    pub fn run(self) -> Result<u64> {
        let request = delete_request(&self.request, self.target)?;
        let outcome = self.scope.write(|writer| {
            let (collection, interrupt) = (&*self.collection, &self.request.interrupt);
            writer.run::<DeleteOutcome>(WriteOp::Delete { collection, request: &request, interrupt })
        })?;
        Ok(outcome.deleted)
    }
}

/// Parses a deletion.
pub(crate) fn delete_request(request: &Request, target: Target) -> Result<DeleteRequest> {
    let mut query = request.parse(Output::Whole, Ties::ById)?;
    if target == Target::One && query.order().is_some() {
        query.limit = Some(1);
    }
    Ok(DeleteRequest { query, target, shows: Shows::Nothing })
}

impl std::fmt::Debug for Delete {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Delete").field("collection", &self.collection).field("request", &self.request).finish()
    }
}
