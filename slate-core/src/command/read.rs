use bson::RawDocumentBuf;

use super::{common::Common, reply::Reply};
use crate::{
    Explain, ExplainVerbosity, Result,
    call::{BoundRequest, DatabaseHandle, Request, Scope},
    exec::Rows,
    plan::Query,
};

/// A parsed command that reads a collection.
pub(super) struct ReadCommand<'c> {
    pub(super) collection: &'c str,
    pub(super) request: Request,
    common: Common,
}

impl<'c> ReadCommand<'c> {
    pub(super) fn new(collection: &'c str, mut request: Request, common: Common) -> Self {
        request.call.interrupt = common.call.interrupt.clone();
        Self { collection, request, common }
    }

    /// Explains the query that `parse` returns.
    pub(super) fn explain(
        self,
        database: &DatabaseHandle,
        verbosity: ExplainVerbosity,
        parse: impl FnOnce(&BoundRequest<'_>) -> Result<Query>,
    ) -> Result<(Common, Explain)> {
        let scope = Scope::Database(database.clone());
        let explain = self.request.explain(&scope, self.collection, verbosity, parse)?;
        Ok((self.common, explain))
    }

    /// Appends all rows as the first batch of a cursor.
    pub(super) fn reply(&self, mut rows: Box<dyn Rows + Send>) -> Result<RawDocumentBuf> {
        let mut reply = Reply::default();
        reply.cursor(&self.common.namespace(self.collection), |batch, name| {
            let more = rows.advance()?;
            if let Some(row) = rows.current().filter(|_| more) {
                batch.document(name, row);
            }
            Ok(more)
        })?;
        reply.finish()
    }
}
