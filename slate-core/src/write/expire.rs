use std::{collections::BTreeSet, ops::ControlFlow};

use slate_query::{
    key::{self, Direction},
    raw::{Doc, Kind, Value},
};
use slate_store::{Bounds, PointReader, Transaction, View};

use super::{Session, unique::record_key};
use crate::{Result, call_context::CallContext, catalog::IndexInfo, interrupt::Interrupt};

/// The result of a round of expiry.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ExpireOutcome {
    pub(crate) deleted: u64,
    /// Whether the round ended at its limit, so that others may be due.
    pub(crate) is_full: bool,
}

/// Bytes of documents after which a round ends.
const ROUND_BYTES: usize = 4 << 20;

impl<T: Transaction> Session<T> {
    /// Deletes at most `limit` documents that are due by a TTL index at this time. Does nothing if there is no such index.
    ///
    /// Each entry of the index up to the latest date that is due belongs to a document that is due: an array has an entry for each of its
    /// dates, values of other types are not among the dates, and a partial index has entries only of the documents that match.
    pub(crate) fn expire(
        &mut self,
        name: &str,
        index: &str,
        now_millis: i64,
        limit: u64,
        call: &CallContext,
    ) -> Result<ExpireOutcome> {
        self.begin_call()?;
        let call = &self.limited(call);
        let mut outcome = ExpireOutcome::default();
        let Some(collection) = self.written(name)? else { return Ok(outcome) };
        let Some((index, seconds)) = collection.index(index).and_then(|index| Some((index, index.expire_after?)))
        else {
            return Ok(outcome);
        };
        let due = now_millis.saturating_sub(i64::from(seconds).saturating_mul(1_000));
        let mut interrupt = call.interrupt.clone();
        let keys = due_records(&self.view(), index, due, limit, &mut interrupt, &mut outcome)?;
        self.read_all(&collection);
        let mut changes = self.change_set(&collection, call);
        let most_keys = self.most_keys_of_round();
        {
            let view = self.view();
            let mut reader = view.point_reader()?;
            let mut bytes = 0;
            for key in &keys {
                reader.load(&[(collection.records, key)])?;
                let Some(stored) = reader.loaded(0) else { continue };
                bytes += stored.len();
                changes.delete(&collection, key, Doc::stored(stored))?;
                changes.spill_if_full()?;
                outcome.deleted += 1;
                if bytes > ROUND_BYTES || changes.keys() >= most_keys {
                    outcome.is_full = true;
                    break;
                }
            }
        }
        changes.growth = i64::try_from(outcome.deleted).map_or(i64::MIN, |records| -records);
        self.apply(&collection, changes, call)?;
        Ok(outcome)
    }
}

/// Returns the keys of the records with a date up to `due` (in milliseconds since 1970), at most `limit` of them. Sets `is_full` if there are more
/// entries.
fn due_records(
    view: &impl View,
    index: &IndexInfo,
    due: i64,
    limit: u64,
    interrupt: &mut Interrupt,
    outcome: &mut ExpireOutcome,
) -> Result<BTreeSet<Vec<u8>>> {
    let (start, end) = due_bounds(index, due);
    let mut keys = BTreeSet::new();
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let bounds = Bounds { start: Some(&start), end: Some(&end) };
    let broken = view.scan(index.keyspace, bounds, |entry, value| {
        if keys.len() >= limit {
            outcome.is_full = true;
            return ControlFlow::Break(Ok(()));
        }
        // An array has many entries of one record.
        match interrupt.tick().and_then(|()| record_key(index, entry, value)) {
            Ok(key) => keys.insert(key.to_vec()),
            Err(error) => return ControlFlow::Break(Err(error)),
        };
        ControlFlow::Continue(())
    })?;
    broken.transpose()?;
    Ok(keys)
}

/// Returns the range of the entries whose first value is a date up to `due`.
fn due_bounds(index: &IndexInfo, due: i64) -> (Vec<u8>, Vec<u8>) {
    let direction = index.pattern.fields().first().map_or(Direction::Ascending, |(_, direction)| *direction);
    let date = |millis: i64| {
        let mut bytes = Vec::new();
        key::encode_directed(Some(Value::new(Kind::DateTime, &millis.to_le_bytes())), direction, &mut bytes);
        bytes
    };
    // The byte after a whole value is never 0xff: the end is just above all entries that begin with the value.
    let above = |mut bytes: Vec<u8>| {
        bytes.push(0xff);
        bytes
    };
    match direction {
        Direction::Ascending => (date(i64::MIN), above(date(due))),
        Direction::Descending => (date(due), above(date(i64::MIN))),
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use bson::rawdoc;
    use slate_store::{Durability, Keyspace, Store, TransactionExt, memory::MemoryStore};

    use super::*;
    use crate::{CancelToken, ErrorKind, entry};

    #[test]
    fn the_scan_of_one_record_with_many_dates_ends_with_its_call() {
        let definition = rawdoc! { "name": "i", "keyspace": 40_i64, "key": { "t": 1 } };
        let index = IndexInfo::read(Doc::from(&definition)).unwrap().unwrap();
        let record = entry::record_key(Value::new(Kind::Int32, &[1, 0, 0, 0])).unwrap();
        let store = MemoryStore::default();
        let mut transaction = store.begin(Duration::ZERO).unwrap();
        for millis in 0..1_000_i64 {
            let (mut date, bytes) = (Vec::new(), millis.to_le_bytes());
            let value = Value::new(Kind::DateTime, &bytes);
            key::encode_directed(Some(value), Direction::Ascending, &mut date);
            let length = u8::try_from(date.len()).unwrap();
            transaction.put(Keyspace(40), &[&date[..], &record, &[length]].concat(), &[]).unwrap();
        }
        transaction.commit(Durability::Deferred).unwrap();
        let (view, index, token) = (store.snapshot().unwrap(), Arc::new(index), CancelToken::new());
        let due = |interrupt: &mut Interrupt| {
            due_records(&view, &index, 1_000, u64::MAX, interrupt, &mut ExpireOutcome::default())
        };
        assert_eq!(due(&mut Interrupt::default()).unwrap(), BTreeSet::from([record]));
        let mut interrupt = Interrupt::default();
        interrupt.cancel(token.clone());
        token.cancel();
        assert_eq!(due(&mut interrupt).unwrap_err().kind(), ErrorKind::Interrupted);
    }
}
