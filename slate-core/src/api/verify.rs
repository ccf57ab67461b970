use std::{fmt, sync::Arc};

use crate::{
    ErrorKind, Result, VerifyProgress, VerifyReport,
    api::setters::setters,
    call::{DatabaseHandle, ReadSet, Scope},
    call_context::CallContext,
    verify::{VerifyRun, unreadable},
};

/// Checks collections for damage; see [`ReadCollection::verify`](crate::ReadCollection::verify) and
/// [`Database::verify`](crate::Database::verify).
#[must_use = "verification starts with `run`"]
pub struct Verify<'p> {
    subject: Verified,
    call: CallContext,
    progress: Box<dyn FnMut(&VerifyProgress<'_>) + Send + 'p>,
}

enum Verified {
    Collection(Scope, Arc<str>),
    /// All collections.
    Database(DatabaseHandle),
}

impl<'p> Verify<'p> {
    pub(crate) fn collection(scope: Scope, collection: &Arc<str>, call: CallContext) -> Self {
        Self::new(Verified::Collection(scope, Arc::clone(collection)), call)
    }

    pub(crate) fn database(database: DatabaseHandle) -> Self {
        let call = CallContext::begin(database.limits());
        Self::new(Verified::Database(database), call)
    }

    fn new(subject: Verified, call: CallContext) -> Self {
        Self { subject, call, progress: Box::new(|_| {}) }
    }

    /// Sets a callback that is called about every thousand documents.
    pub fn progress<'q>(self, progress: impl FnMut(&VerifyProgress<'_>) + Send + 'q) -> Verify<'q> {
        let Self { subject, call, .. } = self;
        Verify { subject, call, progress: Box::new(progress) }
    }

    setters! { call: deadline, cancel }

    /// Checks one commit, while writers continue. Damage is returned in the report; it is not an error of the call.
    ///
    /// Outside of snapshots and transactions, the store first verifies its checksums. `Deferred` commits are synced for that, and on redb commits
    /// wait for a short time.
    ///
    /// Cost: reads all files, then every document once and looks up each of its index entries. An index with surplus entries is scanned.
    ///
    /// # Errors
    /// Fails if the store fails, if the list of collections cannot be read ([`ErrorKind::Corrupt`]), and if the check is interrupted.
    pub fn run(mut self) -> Result<VerifyReport> {
        self.call.check()?;
        let (call, progress) = (self.call, &mut *self.progress);
        let mut run = VerifyRun { interrupt: call.interrupt.clone(), progress, report: VerifyReport::default() };
        match self.subject {
            Verified::Collection(scope, name) => {
                scope.verify_storage(&name, &call, &mut run)?;
                scope.read(ReadSet::Collection(&name), &call, |reader| reader.verify(&name, &mut run))?;
            }
            Verified::Database(database) => {
                database.verify_storage(None, &call, &mut run)?;
                let snapshot = database.reader(&call)?;
                for collection in snapshot.catalog().collections() {
                    match snapshot.verify(&collection.name, &mut run) {
                        // Continues, because other collections may be sound.
                        Err(error) if error.kind() == ErrorKind::Corrupt => {
                            run.found(unreadable(&collection.name, &error));
                        }
                        verified => verified?,
                    }
                }
            }
        }
        Ok(run.report)
    }
}

impl fmt::Debug for Verify<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let collection = match &self.subject {
            Verified::Collection(_, name) => Some(name),
            Verified::Database(_) => None,
        };
        f.debug_struct("Verify").field("collection", &collection).finish_non_exhaustive()
    }
}
