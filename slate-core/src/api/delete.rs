use std::{sync::Arc, time::Duration};

use crate::{
    CancelToken, Hint, IntoDocument, Result,
    exec::Target,
    operation::request::{Request, setters},
    operation::scope::Scope,
    plan::{Output, Ties},
    write::{DeleteRequest, Shows},
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
        /// Takes this index instead of what the planner would choose.
        hint(hint: Hint);
        /// Ends, with nothing deleted, when it is not done within this time from now.
        deadline(within: Duration);
        /// Ends, with nothing deleted, when the token is cancelled.
        cancel(token: CancelToken);
        /// Holds rows in at most so many bytes of memory; the rest goes to temporary files. The default is the database's, see
        /// [`DatabaseBuilder::memory_limit`](crate::DatabaseBuilder::memory_limit).
        memory_limit(bytes: usize);
        /// Takes the candidate plan of this number: for tests that compare them all.
        #[doc(hidden)]
        force(candidate: usize);
    }

    /// Runs the deletion, all of it or nothing; gives back how many documents it deleted.
    ///
    /// # Errors
    /// A filter that is not valid; where the storage fails.
    pub fn run(self) -> Result<u64> {
        let request = delete_request(&self.request, self.target)?;
        let outcome = self.scope.write(|writer| writer.delete(&self.collection, &request, &self.request.interrupt))?;
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
