use bson::RawDocumentBuf;

use super::{
    call::CommandScope,
    common::Common,
    cursor::{CommandCursor, CursorOptions, CursorRows},
    explain::{ExplainedCommand, Purpose},
    reply::Reply,
};
use crate::{
    CancelToken, Cursor, ExplainVerbosity, Result,
    call::{Definitions, Request, RequestSource},
    plan::Query,
};

/// A parsed command that reads a collection.
pub(super) struct ReadCommand<'c> {
    pub(super) at: CommandScope<'c>,
    pub(super) collection: &'c str,
    pub(super) request: Request,
    pub(super) common: Common,
    kill: CancelToken,
}

impl<'c> ReadCommand<'c> {
    pub(super) fn new(at: CommandScope<'c>, collection: &'c str, mut request: Request, common: Common) -> Self {
        let kill = at.running.token.map_or_else(CancelToken::new, CancelToken::child);
        if let Some(own) = at.own.filter(|own| own.has_name(collection)) {
            request.source = RequestSource::Given(own.documents());
        }
        request.call.activity.clone_from(&common.call.activity);
        request.call.interrupt = common.call.interrupt.clone().renewable();
        request.call.interrupt.cancel(kill.clone());
        Self { at, collection, request, common, kill }
    }

    /// Explains the query that `parse` returns.
    pub(super) fn explain(
        self,
        verbosity: ExplainVerbosity,
        purpose: Purpose,
        parse: impl Fn(&Request, &Definitions<'_>) -> Result<Query>,
    ) -> Result<ExplainedCommand> {
        let explain = self.request.explain(self.at.scope, self.collection, verbosity, parse)?;
        Ok(ExplainedCommand { common: self.common, explain, purpose })
    }

    /// Returns the reply: a cursor with the first batch of the rows.
    pub(super) fn reply(self, rows: Cursor, options: CursorOptions) -> Result<RawDocumentBuf> {
        let namespace = self.common.full_name(self.collection);
        let rows = CursorRows::Query(Box::new(rows));
        let cursor = CommandCursor::new(rows, namespace, &self.common, self.request.call.interrupt, self.kill);
        let mut reply = Reply::default();
        self.at.first_batch(&mut reply, cursor, options)?;
        reply.finish()
    }
}
