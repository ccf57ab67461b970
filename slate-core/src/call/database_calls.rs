//! Calls on a whole database rather than one collection.

use std::collections::BTreeMap;
#[cfg(feature = "async")]
use std::time::Duration;

use slate_store::{Damage, SizeDetail};

use super::DatabaseHandle;
#[cfg(feature = "async")]
use super::open_transactions::OpenTransaction;
#[cfg(feature = "async")]
use crate::Error;
use crate::{
    ChangeLogStats, DatabaseStats, Result,
    call_context::CallContext,
    verify::{VerifyRun, verify_storage},
};

impl DatabaseHandle {
    /// Runs `work` in a transaction that belongs to no thread and no task. Commits it within the limits of the call, or rolls it back if `work`
    /// fails. With a `WaitBudget`, spends it instead of waiting, and if the commit conflicts.
    #[cfg(feature = "async")]
    pub(crate) fn transact_detached<R, E: From<Error>>(
        &self,
        call: &CallContext,
        work: impl FnOnce(OpenTransaction) -> Result<R, E>,
    ) -> Result<R, E> {
        let (engine, mut options, budget) =
            (self.engine_to_write()?, self.begin_options(call), call.interrupt.budget());
        let writer = match budget {
            Some(budget) => {
                options.wait = Duration::ZERO;
                engine.try_begin(&options)?.ok_or_else(|| budget.spend())?
            }
            None => engine.begin(&options)?,
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
                // A short commit leaves no upkeep.
                let committed = writer.commit(self.durability());
                committed.map_err(|error| if error.is_retryable() { budget.spend() } else { error })?;
            }
            None => self.finish(writer, self.durability())?,
        }
        Ok(result)
    }

    /// Measures all collections and indexes of the latest commit, the log of changes, and the store.
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

    /// Adds the damage that the store finds in one collection (`None`: in all) to a report, and returns it; also damage that belongs to no
    /// collection.
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

#[cfg(feature = "async")]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CancelToken, Database, ErrorKind, interrupt::WaitBudget};

    /// Inserts a document in a detached transaction, after which `end` is called. Returns the error, and how many documents there are.
    fn insert(call: &CallContext, end: impl FnOnce()) -> (Option<ErrorKind>, u64) {
        let db = Database::open("memory:").unwrap();
        db.collection("c").insert_many(&[bson::rawdoc! { "_id": 1 }]).run().unwrap();
        let document = bson::rawdoc! { "_id": 2 };
        let inserted = db.handle().transact_detached(call, |open| -> Result<()> {
            let document = crate::document::borrowed(std::slice::from_ref(&document));
            open.with(|writer| writer.insert("c", &document, crate::write::InsertMode::Ordered, call))?;
            end();
            Ok(())
        });
        (
            inserted.err().map(|error| error.kind()),
            db.collection::<bson::RawDocumentBuf>("c").count_documents(bson::doc! {}).run().unwrap(),
        )
    }

    #[test]
    fn a_detached_transaction_ends_with_its_call() {
        let (waits, mut tries) = (CallContext::default(), CallContext::default());
        tries.interrupt.limit_to(&WaitBudget::default());
        for mut call in [waits, tries] {
            assert_eq!(insert(&call, || {}), (None, 2));
            let token = CancelToken::new();
            call.cancel(token.clone());
            assert_eq!(insert(&call, || token.cancel()), (Some(ErrorKind::Interrupted), 1));
        }
    }
}
