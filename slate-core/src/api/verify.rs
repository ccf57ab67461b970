use std::{fmt, sync::Arc};

use crate::{
    Result, VerifyProgress, VerifyReport,
    api::setters::setters,
    interrupt::Interrupt,
    maintenance::VerifyRun,
    operation::{read_op::ReadOp, scope::Scope},
};

/// Checks collections for damage; see [`ReadCollection::verify`](crate::ReadCollection::verify) and
/// [`Database::verify`](crate::Database::verify).
#[must_use = "verification starts with `run`"]
pub struct Verify<'p> {
    scope: Scope,
    /// The collection to verify; all if `None`.
    collection: Option<Arc<str>>,
    interrupt: Interrupt,
    progress: Box<dyn FnMut(&VerifyProgress<'_>) + Send + 'p>,
}

impl<'p> Verify<'p> {
    pub(crate) fn new(scope: Scope, collection: Option<Arc<str>>) -> Self {
        Self { scope, collection, interrupt: Interrupt::default(), progress: Box::new(|_| {}) }
    }

    /// Sets a callback that is called about every thousand documents.
    pub fn progress<'q>(self, progress: impl FnMut(&VerifyProgress<'_>) + Send + 'q) -> Verify<'q> {
        let Self { scope, collection, interrupt, .. } = self;
        Verify { scope, collection, interrupt, progress: Box::new(progress) }
    }

    setters! { interrupt: limited, deadline, cancel }

    /// Checks one commit, while writers continue. Faults are returned in the report; they are not errors of the call.
    ///
    /// Cost: reads every document once and looks up each of its index entries. An index with surplus entries is scanned.
    ///
    /// # Errors
    /// Fails if the store fails or detects damage in its own structures, and if the check is interrupted.
    pub fn run(mut self) -> Result<VerifyReport> {
        self.interrupt.check()?;
        let mut run =
            VerifyRun { interrupt: self.interrupt, progress: &mut *self.progress, report: VerifyReport::default() };
        match (self.collection, self.scope) {
            (Some(collection), scope) => scope.read::<()>(&collection, ReadOp::Verify(&mut run))?,
            (None, Scope::Database(database)) => {
                let snapshot = database.engine()?.snapshot()?;
                for collection in snapshot.catalog().collections() {
                    snapshot.read(&collection.name, ReadOp::Verify(&mut run))?;
                }
            }
            // Only `Database::verify` names no collection.
            (None, Scope::Snapshot(_) | Scope::Transaction(_)) => {}
        }
        Ok(run.report)
    }
}

impl fmt::Debug for Verify<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verify").field("collection", &self.collection).finish_non_exhaustive()
    }
}
