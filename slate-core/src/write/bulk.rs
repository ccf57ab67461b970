use bson::RawDocumentBuf;
use slate_query::raw::OwnedValue;
use slate_store::Transaction;

use super::{DeleteRequest, InsertMode, Session, UpdateRequest, insert::InsertOutcome};
use crate::{Error, Result, call_context::CallContext};

/// One operation of a bulk write.
#[derive(Debug)]
pub(crate) enum BulkOperation {
    Insert(RawDocumentBuf),
    Update(UpdateRequest),
    Delete(DeleteRequest),
    /// An operation that could not be parsed. It is rejected when it would be executed.
    Fault,
}

/// The result of a bulk write. Positions are those of the operations.
#[derive(Debug, Default)]
pub(crate) struct BulkOutcome {
    pub(crate) inserted: Vec<(usize, OwnedValue)>,
    pub(crate) upserted: Vec<(usize, OwnedValue)>,
    pub(crate) matched: u64,
    pub(crate) modified: u64,
    pub(crate) deleted: u64,
    /// The rejected operations. `None` for one that could not be parsed, whose error the caller has.
    pub(crate) refused: Vec<(usize, Option<Error>)>,
}

impl BulkOutcome {
    /// Adds the outcome of consecutive inserts, the first of which is at this position.
    fn add_inserted(&mut self, first: usize, inserted: InsertOutcome) {
        self.inserted.extend(inserted.ids.into_iter().map(|(at, id)| (first + at, id)));
        for (at, error) in inserted.refused {
            self.refuse(first + at, Some(error));
        }
    }

    /// Adds a rejected operation. Its error is cut to a length that depends on how many operations were rejected before
    /// it.
    fn refuse(&mut self, at: usize, error: Option<Error>) {
        let error = error.map(|error| error.refused_after(self.refused.len()));
        self.refused.push((at, error));
    }
}

impl<T: Transaction> Session<T> {
    /// Executes the operations in order; unless `mode` is [`InsertMode::Unordered`], only until one is rejected. Each is
    /// applied completely or rejected.
    ///
    /// # Errors
    /// Fails if the store fails or the operation is interrupted; an error after the first operation ends the transaction.
    /// Rejected operations are returned in the outcome.
    pub(crate) fn bulk(
        &mut self,
        operations: &[(&str, BulkOperation)],
        mode: InsertMode,
        call: &CallContext,
    ) -> Result<BulkOutcome> {
        let mut outcome = BulkOutcome::default();
        let mut at = 0;
        while let Some((collection, operation)) = operations.get(at) {
            let refused = outcome.refused.len();
            let next = match operation {
                BulkOperation::Insert(_) => self.bulk_insert(operations, at, mode, &mut outcome, call),
                other => match self.bulk_one(collection, other, at, &mut outcome, call) {
                    Err(error) if error.is_refusal() => {
                        outcome.refuse(at, Some(error));
                        Ok(at + 1)
                    }
                    done => done.map(|()| at + 1),
                },
            };
            // Earlier operations have been applied.
            let next = if at > 0 { self.end_on_error(next)? } else { next? };
            if mode != InsertMode::Unordered && outcome.refused.len() > refused {
                break;
            }
            at = next;
        }
        Ok(outcome)
    }

    fn bulk_one(
        &mut self,
        collection: &str,
        operation: &BulkOperation,
        at: usize,
        outcome: &mut BulkOutcome,
        call: &CallContext,
    ) -> Result<()> {
        match operation {
            BulkOperation::Update(request) => {
                let updated = self.update(collection, request, call)?;
                outcome.matched += updated.matched;
                outcome.modified += updated.modified;
                outcome.upserted.extend(updated.upserted.map(|id| (at, id)));
            }
            BulkOperation::Delete(request) => outcome.deleted += self.delete(collection, request, call)?.deleted,
            BulkOperation::Insert(_) => {}
            BulkOperation::Fault => outcome.refuse(at, None),
        }
        Ok(())
    }

    /// Combines consecutive inserts into one collection. Returns the position after them.
    fn bulk_insert(
        &mut self,
        operations: &[(&str, BulkOperation)],
        first: usize,
        mode: InsertMode,
        outcome: &mut BulkOutcome,
        call: &CallContext,
    ) -> Result<usize> {
        let rest = operations.get(first..).unwrap_or_default();
        let Some((collection, _)) = rest.first() else { return Ok(first) };
        let documents: Vec<&RawDocumentBuf> = rest
            .iter()
            .map_while(|(name, operation)| match operation {
                BulkOperation::Insert(document) if name == collection => Some(document),
                _ => None,
            })
            .collect();
        match self.insert(collection, &documents, mode, call) {
            Ok(inserted) => outcome.add_inserted(first, inserted),
            // The error concerns all documents: the collection name is invalid, or the documents exceed the bytes of a
            // transaction. Inserts each document separately, so that each is accepted or rejected by itself.
            Err(error) if error.is_refusal() => {
                let refused = outcome.refused.len();
                for (at, document) in (first..).zip(documents.iter()) {
                    match self.insert(collection, std::slice::from_ref(document), mode, call) {
                        Ok(inserted) => outcome.add_inserted(at, inserted),
                        Err(error) if error.is_refusal() => outcome.refuse(at, Some(error)),
                        Err(error) => return self.end_on_error(Err(error)),
                    }
                    if mode != InsertMode::Unordered && outcome.refused.len() > refused {
                        break;
                    }
                }
            }
            Err(error) => return Err(error),
        }
        Ok(first + documents.len())
    }
}
