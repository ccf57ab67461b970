use slate_store::Transaction;

use super::{Reads, Session};
use crate::{Result, call_context::CallContext, exec::Target, plan::Query};

/// A parsed delete of one or many documents.
#[derive(Clone, Debug)]
pub(crate) struct DeleteRequest {
    pub(crate) query: Query,
    pub(crate) target: Target,
    pub(crate) shows: Shows,
}

/// Whether a delete of one document returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shows {
    Nothing,
    Deleted,
}

/// The result of a delete.
#[derive(Debug, Default)]
pub(crate) struct DeleteOutcome {
    pub(crate) deleted: u64,
    /// The deleted document, if it was requested.
    pub(crate) shown: Option<Vec<u8>>,
}

impl<T: Transaction> Session<T> {
    /// Deletes the request's targets. The call is atomic.
    pub(crate) fn delete(&mut self, name: &str, request: &DeleteRequest, call: &CallContext) -> Result<DeleteOutcome> {
        let call = &self.limited(call);
        call.during(|| self.delete_limited(name, request, call))
    }

    fn delete_limited(&mut self, name: &str, request: &DeleteRequest, call: &CallContext) -> Result<DeleteOutcome> {
        self.begin_call()?;
        let mut outcome = DeleteOutcome::default();
        self.reads(name, Reads::Matches(&request.query.filter))?;
        let Some(collection) = self.written(name)? else { return Ok(outcome) };
        let mut changes = self.change_set(&collection, call);
        self.visit_targets(&collection, &request.query, request.target, call, |key, old| {
            outcome.deleted += 1;
            changes.delete(&collection, key, old)?;
            if request.shows == Shows::Deleted {
                outcome.shown = Some(old.bytes().to_vec());
            }
            changes.spill_if_full()
        })?;
        changes.growth = i64::try_from(outcome.deleted).map_or(i64::MIN, |records| -records);
        // Deletes cannot violate uniqueness.
        self.apply(&collection, changes, call)?;
        Ok(outcome)
    }
}
