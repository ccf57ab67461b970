use std::{collections::BTreeMap, fmt, time::Duration};

use bson::Bson;
use slate_query::raw::OwnedValue;

use crate::{
    CancelToken, Error, Result, WriteError, WriteOperation,
    interrupt::Interrupt,
    operation::scope::Scope,
    write::{BulkOperation, BulkOutcome, InsertMode},
};

/// Many writes as one; see [`Collection::bulk_write`](crate::Collection::bulk_write) and
/// [`Database::bulk_write`](crate::Database::bulk_write).
///
/// Each operation is done whole or refused whole, and sees what those before it did. What is accepted is committed in one
/// transaction: a crash leaves all of it or nothing. For all operations or none, run it in
/// [`Database::transact`](crate::Database::transact) and end with [`BulkWriteResult::into_result`]. An update of many
/// documents is held in memory until it is done.
#[must_use = "nothing is written until `run`"]
pub struct BulkWrite {
    scope: Scope,
    operations: Vec<(String, WriteOperation)>,
    mode: InsertMode,
    interrupt: Interrupt,
}

/// What came of a [`BulkWrite`].
#[derive(Debug, Default)]
#[non_exhaustive]
#[must_use = "operations may have been refused"]
pub struct BulkWriteResult {
    /// The `_id`s of the documents that insertions inserted, by the places of the operations.
    pub inserted_ids: BTreeMap<usize, Bson>,
    /// The `_id`s of the documents that upserts inserted, by the places of the operations.
    pub upserted_ids: BTreeMap<usize, Bson>,
    /// How many documents updates and replacements matched.
    pub matched: u64,
    /// How many of them changed.
    pub modified: u64,
    /// How many documents were deleted.
    pub deleted: u64,
    /// The operations that were refused, in their order.
    pub errors: Vec<WriteError>,
}

impl BulkWriteResult {
    /// The result if nothing was refused, else the first error. What was done stays.
    ///
    /// # Errors
    /// The first operation's that was refused.
    pub fn into_result(mut self) -> Result<Self> {
        if self.errors.is_empty() { Ok(self) } else { Err(self.errors.swap_remove(0).error) }
    }
}

impl BulkWrite {
    pub(crate) fn new(scope: Scope, operations: Vec<(String, WriteOperation)>) -> Self {
        Self { scope, operations, mode: InsertMode::Ordered, interrupt: Interrupt::default() }
    }

    /// The operations before the first refused one are done, those after it are not tried. So it is if not said.
    pub fn ordered(mut self) -> Self {
        self.mode = InsertMode::Ordered;
        self
    }

    /// Every operation that is not refused is done, in their order.
    pub fn unordered(mut self) -> Self {
        self.mode = InsertMode::Unordered;
        self
    }

    /// Ends, with nothing written, when it is not done within this time from now.
    pub fn deadline(mut self, within: Duration) -> Self {
        self.interrupt.within(within);
        self
    }

    /// Ends, with nothing written, when the token is cancelled.
    pub fn cancel(mut self, token: CancelToken) -> Self {
        self.interrupt.by(token);
        self
    }

    /// Runs the operations. A refused one is told in the result, which is no error of the call.
    ///
    /// # Errors
    /// Where nothing was written: the storage failed, or the time was up.
    pub fn run(self) -> Result<BulkWriteResult> {
        let mut faults = BTreeMap::new();
        let mut operations = Vec::with_capacity(self.operations.len());
        for (at, (collection, operation)) in self.operations.iter().enumerate() {
            let parsed = operation.parse().unwrap_or_else(|error| {
                faults.insert(at, error);
                BulkOperation::Fault
            });
            operations.push((collection.as_str(), parsed));
        }
        let outcome = self.scope.write(|writer| writer.bulk(&operations, self.mode, &self.interrupt))?;
        Ok(result(outcome, faults))
    }
}

fn result(outcome: BulkOutcome, mut faults: BTreeMap<usize, Error>) -> BulkWriteResult {
    fn by_place(ids: &[(usize, OwnedValue)]) -> BTreeMap<usize, Bson> {
        ids.iter().filter_map(|(at, id)| Some((*at, id.as_value().to_bson()?))).collect()
    }
    let refused = outcome.refused.into_iter();
    let errors = refused.filter_map(|(index, error)| {
        let error = error.or_else(|| faults.remove(&index))?;
        Some(WriteError { index, error })
    });
    BulkWriteResult {
        errors: errors.collect(),
        inserted_ids: by_place(&outcome.inserted),
        upserted_ids: by_place(&outcome.upserted),
        matched: outcome.matched,
        modified: outcome.modified,
        deleted: outcome.deleted,
    }
}

impl fmt::Debug for BulkWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BulkWrite").field("operations", &self.operations).field("mode", &self.mode).finish()
    }
}
