//! Calls of a database as a whole, beside those of its collections.

use std::collections::BTreeMap;
#[cfg(feature = "async")]
use std::time::Duration;

use slate_store::{Damage, SizeDetail};

use super::DatabaseHandle;
#[cfg(feature = "async")]
use super::open_transactions::OpenTransaction;
use crate::{
    ChangeLogStats, DatabaseStats, Result,
    call_context::CallContext,
    verify::{VerifyRun, verify_storage},
};
#[cfg(feature = "async")]
use crate::{
    Error, Isolation,
    interrupt::{Interrupt, WaitBudget},
    write::BeginOptions,
};

impl DatabaseHandle {
    /// Runs `work` in a transaction that belongs to no thread and no task, and commits it. Within a budget, spends the budget instead of
    /// waiting.
    #[cfg(feature = "async")]
    pub(crate) fn transact_detached<R, E: From<Error>>(
        &self,
        budget: Option<&WaitBudget>,
        work: impl FnOnce(OpenTransaction) -> Result<R, E>,
    ) -> Result<R, E> {
        let (wait, isolation) = (self.lock_timeout(), Isolation::default());
        let writer = match budget {
            Some(budget) => {
                let mut limits = Interrupt::default();
                limits.limit_to(budget);
                let options = BeginOptions { wait: Duration::ZERO, isolation, limits, announced: None };
                self.engine_to_write()?.try_begin(&options)?.ok_or_else(|| budget.spend())?
            }
            None => {
                let limits = Interrupt::default();
                self.engine_to_write()?.begin(&BeginOptions { wait, isolation, limits, announced: None })?
            }
        };
        let open = OpenTransaction::new(writer, None);
        let result = match work(open.clone()) {
            Ok(result) => result,
            Err(error) => {
                open.end();
                return Err(error);
            }
        };
        let writer = open.take()?;
        match budget {
            Some(budget) => {
                // There is no work to do after a short commit.
                let committed = writer.commit(self.durability());
                committed.map_err(|error| if error.is_retryable() { budget.spend() } else { error })?;
            }
            None => self.finish(writer, self.durability())?,
        }
        Ok(result)
    }

    /// Measures all collections and indexes of the latest commit, and the files.
    pub(crate) fn stats(&self, call: &CallContext, detail: SizeDetail) -> Result<DatabaseStats> {
        let engine = self.engine()?;
        let snapshot = engine.snapshot()?;
        let mut collections = BTreeMap::new();
        for collection in snapshot.catalog().collections() {
            collections.insert(collection.name.to_string(), snapshot.stats(&collection.name, call)?);
        }
        let views = snapshot.catalog().views().count();
        let changes = snapshot.change_counts()?.map(ChangeLogStats::from);
        drop(snapshot);
        let (storage, oldest_snapshot) = (engine.size(detail)?, engine.metrics().oldest_snapshot);
        Ok(DatabaseStats { collections, views, storage, oldest_snapshot, changes })
    }

    /// Adds the damage that the store finds in one collection, or in all, to a report, and returns it.
    pub(crate) fn verify_storage(
        &self,
        collection: Option<&str>,
        call: &CallContext,
        run: &mut VerifyRun<'_>,
    ) -> Result<Vec<Damage>> {
        let (engine, reader) = (self.engine()?, self.reader(call)?);
        verify_storage(reader.catalog(), collection, run, |visitor| engine.check(visitor))
    }
}
