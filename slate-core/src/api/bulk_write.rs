use std::collections::BTreeMap;

use bson::Bson;
use slate_query::raw::OwnedValue;

use crate::{
    Error, Result, WriteError, WriteOperation,
    api::setters::setters,
    call::Scope,
    call_context::CallContext,
    write::{BulkOperation, BulkOutcome, InsertMode},
};

/// Many writes in one transaction; see [`Collection::bulk_write`](crate::Collection::bulk_write) and
/// [`Database::bulk_write`](crate::Database::bulk_write).
///
/// Each operation is applied or refused as a whole, and sees the changes of the operations before it. By default the
/// first refused operation ends the call, see [`BulkWrite::ordered`]. The applied operations are committed in one
/// transaction: a crash leaves all of them or none. To apply all operations or none, run it in
/// [`Database::transact`](crate::Database::transact) and call [`BulkWriteResult::into_result`].
#[must_use = "nothing is written until `run`"]
pub struct BulkWrite {
    scope: Scope,
    operations: Vec<(String, WriteOperation)>,
    mode: InsertMode,
    call: CallContext,
}

/// The result of a [`BulkWrite`].
#[derive(Debug, Default)]
#[non_exhaustive]
#[must_use = "operations may have been refused"]
pub struct BulkWriteResult {
    /// The `_id`s of the documents that insertions inserted, by the operations' positions.
    pub inserted_ids: BTreeMap<usize, Bson>,
    /// The `_id`s of the documents that upserts inserted, by the operations' positions.
    pub upserted_ids: BTreeMap<usize, Bson>,
    /// Number of documents that updates and replacements matched.
    pub matched: u64,
    /// Number of matched documents that changed.
    pub modified: u64,
    /// Number of deleted documents.
    pub deleted: u64,
    /// The refused operations, in order.
    pub errors: Vec<WriteError>,
}

impl BulkWriteResult {
    /// Returns the result if no operation was refused, else the first error. This undoes nothing: applied operations
    /// remain.
    ///
    /// # Errors
    /// Returns the error of the first refused operation.
    pub fn into_result(mut self) -> Result<Self> {
        if self.errors.is_empty() { Ok(self) } else { Err(self.errors.swap_remove(0).error) }
    }
}

impl BulkWrite {
    pub(crate) fn new(scope: Scope, operations: Vec<(String, WriteOperation)>, call: CallContext) -> Self {
        Self { scope, operations, mode: InsertMode::Ordered, call }
    }

    setters! { mode: ordered; call: bypass_document_validation, bypass_empty_ts_replacement, deadline, cancel }

    /// Runs the operations. A refused operation is reported in the result; it is not an error of the call.
    ///
    /// # Errors
    /// Fails, with nothing written, if the storage fails, the call is interrupted, or conflicts last beyond the lock timeout.
    pub fn run(self) -> Result<BulkWriteResult> {
        self.scope.write(&self.call, |writer| {
            let mut faults = BTreeMap::new();
            let mut operations = Vec::with_capacity(self.operations.len());
            for (at, (collection, operation)) in self.operations.iter().enumerate() {
                let parsed = operation.parse(writer.catalog(), collection).unwrap_or_else(|error| {
                    faults.insert(at, error);
                    BulkOperation::Fault
                });
                operations.push((collection.as_str(), parsed));
            }
            Ok(result(writer.bulk(&operations, self.mode, &self.call)?, faults))
        })
    }
}

fn result(outcome: BulkOutcome, mut faults: BTreeMap<usize, Error>) -> BulkWriteResult {
    fn by_place(ids: &[(usize, OwnedValue)]) -> BTreeMap<usize, Bson> {
        ids.iter().filter_map(|(at, id)| Some((*at, id.as_value().to_bson()?))).collect()
    }
    let refused = outcome.refused.into_iter().enumerate();
    let errors = refused.filter_map(|(nth, (index, error))| {
        let error = error.or_else(|| Some(faults.remove(&index)?.refused_after(nth)))?;
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

crate::debug::shown! { self: BulkWrite { operations: self.operations, mode: self.mode } }
