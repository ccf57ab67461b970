//! Writes of rows, of which there may be more than memory holds: those of a pipeline that ends with `$out` or `$merge`. All of them become one change
//! set, which is spilled, so that memory does not limit the size of the call.

use bson::{RawDocument, RawDocumentBuf};
use slate_query::{filter::Filter, raw::SmallBytes};
use slate_store::{Transaction, View};

use super::{
    PutKind, PutOutcome, Reads, Session,
    put::{Given, LARGEST_LOAD, LOAD_BYTES, Put, key_of},
};
use crate::{
    Error, Result,
    call_context::CallContext,
    document::as_raw,
    exec::{Rows, Target},
    interrupt::Interrupt,
    plan::Query,
    spill::Sorter,
};

impl<T: Transaction> Session<T> {
    /// Replaces all documents of a collection by the rows. The collection is created if it does not exist; its indexes stay. The call is atomic, and
    /// uniqueness is checked at its end.
    pub(crate) fn replace_all(&mut self, name: &str, rows: &mut dyn Rows, call: &CallContext) -> Result<PutOutcome> {
        self.begin_call()?;
        let call = &self.limited(call);
        self.reads(name, Reads::All)?;
        let collection = self.written_or_new(name)?;
        let mut changes = self.change_set(&collection, call);
        changes.empty_timestamps = call.empty_timestamps;
        self.visit_targets(&collection, &Query::of(Filter::all()), Target::All, call, |key, old| {
            changes.growth -= 1;
            changes.delete(&collection, key, old)?;
            changes.spill_if_full()
        })?;
        let (mut outcome, mut interrupt) = (PutOutcome::default(), call.interrupt.clone());
        while let Some(document) = next(rows)? {
            interrupt.tick()?;
            changes.insert(&collection, document)?;
            changes.growth += 1;
            outcome.inserted += 1;
            changes.spill_if_full()?;
        }
        changes.finish(call)?;
        changes.check_ids(&collection)?;
        self.check_and_apply(&collection, changes, call)?;
        Ok(outcome)
    }

    /// Puts the rows by their `_id`s, as [`put`](Self::put) does with documents. The outcome has no `_id`s.
    pub(crate) fn put_rows(
        &mut self,
        name: &str,
        rows: &mut dyn Rows,
        kind: PutKind,
        call: &CallContext,
    ) -> Result<PutOutcome> {
        self.begin_call()?;
        let call = &self.limited(call);
        call.check()?;
        let collection = self.written_or_new(name)?;
        let mut put = Put::new(kind, &collection, self.change_set(&collection, call), 0);
        let mut sorter = Sorter::new(self.memory().of(call.memory).shared_by(2), u64::MAX);
        let (mut number, mut interrupt) = (0_u64, call.interrupt.clone());
        while let Some(document) = next(rows)? {
            interrupt.tick()?;
            match key_of(document)? {
                // Rows with the same `_id` stay in their order.
                Some(key) => sorter.push(&key, &number.to_be_bytes(), document.as_bytes())?,
                None => put.insert_new(0, document)?,
            }
            number += 1;
        }
        sorter.finish(&mut interrupt)?;
        let mut reader = self.transaction.view().point_reader()?;
        let mut sorted = SortedRows { sorter, next: None };
        loop {
            let read = sorted.read(&mut interrupt)?;
            if read.is_empty() {
                break;
            }
            let given: Vec<Given<'_>> =
                read.iter().map(|(key, document)| Given { key: key.clone(), place: 0, document }).collect();
            let groups: Vec<&[Given<'_>]> = given.chunk_by(|a, b| a.key == b.key).collect();
            put.put_loaded(&mut reader, &groups, &mut interrupt)?;
        }
        drop(reader);
        self.finish_put(put, call)
    }
}

fn next(rows: &mut dyn Rows) -> Result<Option<&RawDocument>> {
    if !rows.advance()? {
        return Ok(None);
    }
    rows.current().map(|document| as_raw(document.bytes()).map_err(Error::conversion)).transpose()
}

/// Rows in the order of their record keys.
struct SortedRows {
    sorter: Sorter,
    /// A row that was read and belongs to the next load.
    next: Option<(SmallBytes, RawDocumentBuf)>,
}

impl SortedRows {
    /// Returns rows whose records are loaded together, with all rows of the last key; empty at the end.
    fn read(&mut self, interrupt: &mut Interrupt) -> Result<Vec<(SmallBytes, RawDocumentBuf)>> {
        let (mut read, mut keys, mut bytes) = (Vec::<(SmallBytes, RawDocumentBuf)>::new(), 0, 0);
        read.extend(self.next.take());
        while self.sorter.advance()? {
            interrupt.tick()?;
            let Some(row) = self.sorter.current() else { break };
            let document = RawDocumentBuf::from_bytes(row.payload.to_vec()).map_err(Error::conversion)?;
            bytes += row.payload.len();
            let row = (SmallBytes::from(row.sort_key()), document);
            if read.last().is_none_or(|(key, _)| *key != row.0) {
                if keys == LARGEST_LOAD || bytes > LOAD_BYTES {
                    self.next = Some(row);
                    break;
                }
                keys += 1;
            }
            read.push(row);
        }
        Ok(read)
    }
}
