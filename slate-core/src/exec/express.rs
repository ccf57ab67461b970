//! The express path: finds the records of a single equality without building a plan.
//!
//! It serves a query whose filter is exactly one equality and that returns whole records in any order, without skip, hint or pipeline.
//! An equality on `_id` reads the record by its key. An equality on the leading field of an index that has each matching record once
//! reads the records of its entries, if they are at most [`MAX_ENTRIES`]. Every other query is planned. A plan returns the same records: without this file,
//! only lookups would be slower.

use std::{ops::ControlFlow, sync::Arc};

use slate_query::{
    filter::SingleEquality,
    path::Path,
    pattern::Direction,
    raw::{Doc, SmallBytes},
};
use slate_store::{Keyspace, PointReader, View};

use super::Rows;
use crate::{
    Error, Result,
    call_context::CallContext,
    catalog::{CollectionInfo, IndexInfo},
    entry::IndexEntry,
    metrics::{Examined, PlanSummary},
    plan::{Force, MAX_UNWEIGHED_ENTRIES, Output, Query, component_range},
};

/// Maximum number of index entries that are read without a plan. The planner also selects an index with at most this
/// many entries without comparing costs.
const MAX_ENTRIES: usize = MAX_UNWEIGHED_ENTRIES;

/// Records that were loaded in one call, one row each.
pub(crate) struct ExpressRows<V: View> {
    reader: V::PointReader,
    /// Number of keys that were looked up or read from an index.
    keys: usize,
    records: usize,
    /// Number of rows moved to; `records + 1` after the last.
    moved: usize,
}

/// Returns the key of the only record that can match. `None` unless the query is [plain](is_plain) and its filter is one equality on
/// `_id`. The record may not exist.
pub(super) fn record_key(query: &Query) -> Option<SmallBytes> {
    query.filter.single_equality().filter(|equality| is_plain(query) && is_on_id(equality))?.key()
}

/// Returns whether the query returns whole documents in any order, without skip, limit 0, hint or pipeline.
fn is_plain(query: &Query) -> bool {
    query.sort.is_none()
        && query.window.skip == 0
        && query.window.limit != Some(0)
        && query.hint.is_none()
        && query.force == Force::No
        && query.pipeline.nodes.is_empty()
        && matches!(query.output, Output::Whole)
}

/// Finds the rows of a query whose filter is this equality. Returns `None` if it needs a plan.
pub(crate) fn find<V: View>(
    query: &Query,
    equality: &SingleEquality<'_>,
    view: &V,
    collection: &CollectionInfo,
    call: &CallContext,
) -> Result<Option<ExpressRows<V>>> {
    let Some(key) = equality.key().filter(|_| is_plain(query)) else { return Ok(None) };
    call.interrupt.check()?;
    let index = if is_on_id(equality) {
        None
    } else {
        let Some(index) = collection.usable().find(|index| serves(index, equality.path())) else { return Ok(None) };
        Some(index)
    };
    let rows = match index {
        Some(index) => ExpressRows::of_entries(view, collection, index, key, query.window.limit)?,
        None => {
            collection.uses.ids.add();
            Some(ExpressRows::load(view, collection.records, &[&key])?)
        }
    };
    if let (Some(rows), Some(activity)) = (&rows, &call.activity) {
        let of_index = |index: &Arc<IndexInfo>| PlanSummary::Index("EXPRESS_IXSCAN", Arc::clone(index) as _);
        let examined = Examined { keys: rows.keys(), documents: rows.documents() };
        activity.read(index.map_or(PlanSummary::LOOKUP, of_index), examined);
    }
    Ok(rows)
}

fn is_on_id(equality: &SingleEquality<'_>) -> bool {
    equality.path().as_str() == "_id"
}

/// Returns whether an equality on `path` can be answered by this index alone: the entries of the value name exactly the
/// matching records, once each.
fn serves(index: &IndexInfo, path: &Path) -> bool {
    index.pattern.fields().first().is_some_and(|(field, _)| field == path)
        && index.has_all_documents()
        && index.holds_values()
}

/// Why the walk over the entries of a value ended early.
#[derive(PartialEq, Eq)]
enum Stop {
    TooMany,
    Limit,
}

impl<V: View> ExpressRows<V> {
    /// Loads the records of the entries of a value, up to `limit`. Returns `None` if there are more than
    /// [`MAX_ENTRIES`].
    fn of_entries(
        view: &V,
        collection: &CollectionInfo,
        index: &IndexInfo,
        value: SmallBytes,
        limit: Option<u64>,
    ) -> Result<Option<Self>> {
        let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        let direction = index.pattern.fields().first().map_or(Direction::Ascending, |(_, direction)| *direction);
        let range = component_range(value, direction);
        let mut keys = <[SmallBytes; MAX_ENTRIES]>::default();
        let mut found = 0;
        let stopped = view.scan(index.keyspace, range.bounds(), |key, value| {
            match (keys.get_mut(found), IndexEntry::parse(index, key, value)) {
                (Some(place), Ok(entry)) => *place = entry.record_key.into(),
                (None, Ok(_)) => return ControlFlow::Break(Ok(Stop::TooMany)),
                (_, Err(damaged)) => return ControlFlow::Break(Err(damaged)),
            }
            found += 1;
            if found < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(Ok(Stop::Limit)) }
        })?;
        if stopped.transpose()? == Some(Stop::TooMany) {
            return Ok(None);
        }
        index.uses.add();
        let keys: [&[u8]; MAX_ENTRIES] = keys.each_ref().map(SmallBytes::as_slice);
        let rows = Self::load(view, collection.records, keys.get(..found).unwrap_or_default())?;
        if rows.records < found {
            return Err(Error::dangling(&collection.name));
        }
        Ok(Some(rows))
    }

    /// Loads the records with these keys. The rows end before the first record that does not exist.
    fn load(view: &V, records: Keyspace, keys: &[&[u8]]) -> Result<Self> {
        let mut wanted = [(records, &[][..]); MAX_ENTRIES];
        wanted.iter_mut().zip(keys).for_each(|((_, place), key)| *place = key);
        let mut reader = view.point_reader()?;
        reader.load(wanted.get(..keys.len()).unwrap_or_default())?;
        let records = (0..keys.len()).take_while(|at| reader.loaded(*at).is_some()).count();
        Ok(Self { reader, keys: keys.len(), records, moved: 0 })
    }

    /// Returns the number of keys that were read.
    pub(crate) fn keys(&self) -> u64 {
        number(self.keys)
    }

    /// Returns the number of documents that were read.
    pub(crate) fn documents(&self) -> u64 {
        number(self.records)
    }
}

fn number(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

impl<V: View> Rows for ExpressRows<V> {
    fn advance(&mut self) -> Result<bool> {
        self.moved = self.moved.saturating_add(1).min(self.records + 1);
        Ok(self.moved <= self.records)
    }

    fn current(&self) -> Option<Doc<'_>> {
        self.moved.checked_sub(1).and_then(|at| self.reader.loaded(at)).map(Doc::stored)
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use bson::{RawDocumentBuf, rawdoc};
    use slate_query::{filter::Filter, sort::Sort};
    use slate_store::{Durability, Store, Transaction, TransactionExt, memory::MemoryStore};

    use super::*;
    use crate::{ErrorKind, Hint, plan::Window};

    const RECORDS: Keyspace = Keyspace(7);
    const ENTRIES: Keyspace = Keyspace(8);

    fn query(filter: &RawDocumentBuf) -> Query {
        Query::of(Filter::parse(Doc::from(filter)).unwrap())
    }

    fn key(value: &RawDocumentBuf) -> Vec<u8> {
        crate::entry::record_key(Doc::from(value).get("_id").unwrap()).unwrap()
    }

    #[test]
    fn the_record_key_is_known_where_the_filter_is_one_equality_on_id() {
        for (filter, id) in [
            (rawdoc! { "_id": 5 }, rawdoc! { "_id": 5.0 }),
            (rawdoc! { "_id": { "$eq": "x" } }, rawdoc! { "_id": "x" }),
            (rawdoc! { "_id": { "$in": [5, 5_i64] } }, rawdoc! { "_id": 5 }),
            (rawdoc! { "$and": [{ "_id": { "a": 1 } }] }, rawdoc! { "_id": { "a": 1 } }),
        ] {
            assert_eq!(record_key(&query(&filter)).as_deref(), Some(&*key(&id)), "{filter:?}");
        }
        for filter in [
            rawdoc! {},
            rawdoc! { "_id": 5, "a": 1 },
            rawdoc! { "_id": { "$eq": 5, "$gt": 3 } },
            rawdoc! { "_id": { "$in": [5, 6] } },
            rawdoc! { "_id": { "$in": [] } },
            rawdoc! { "_id": { "$gt": 5 } },
            rawdoc! { "_id": { "$ne": 5 } },
            rawdoc! { "_id": { "$exists": false } },
            rawdoc! { "_id": { "$elemMatch": { "$eq": 5 } } },
            rawdoc! { "_id": { "$regex": "^x$" } },
            rawdoc! { "_id": [5] },
            rawdoc! { "_id": null },
            rawdoc! { "_id.a": 1 },
            rawdoc! { "a": 5 },
            rawdoc! { "$or": [{ "_id": 5 }, { "a": 1 }] },
        ] {
            assert_eq!(record_key(&query(&filter)), None, "{filter:?}");
        }
    }

    #[test]
    fn a_query_with_other_output_or_order_is_planned() {
        let plain = query(&rawdoc! { "_id": 5 });
        let sort = Sort::parse(Doc::from(&rawdoc! { "a": 1, "b": 1 })).unwrap();
        for planned in [
            Query { sort: Some(sort), ..plain.clone() },
            Query { window: Window { skip: 1, limit: None }, ..plain.clone() },
            Query { window: Window { skip: 0, limit: Some(0) }, ..plain.clone() },
            Query { hint: Some(Hint::Forward), ..plain.clone() },
            Query { force: Force::Candidate(7), ..plain.clone() },
            Query { output: Output::Count, ..plain.clone() },
        ] {
            assert_eq!(record_key(&planned), None, "{planned:?}");
        }
        assert!(record_key(&plain).is_some());
        assert!(record_key(&Query { window: Window { skip: 0, limit: Some(1) }, ..plain }).is_some());
    }

    /// Finds `{a: 5}` in an index with these entries and without records.
    fn found(options: &RawDocumentBuf, entries: &[Vec<u8>]) -> Result<Option<usize>> {
        let mut index = rawdoc! { "name": "i", "keyspace": i64::from(ENTRIES.0) };
        options.iter().map(std::result::Result::unwrap).for_each(|(name, value)| index.append(name, value));
        let index = IndexInfo::read(Doc::from(&index)).unwrap().unwrap();
        let collection = CollectionInfo { indexes: vec![Arc::new(index)], ..CollectionInfo::new("c", RECORDS) };
        let store = MemoryStore::default();
        let mut transaction = store.begin(Duration::ZERO).unwrap();
        for entry in entries {
            transaction.put(ENTRIES, entry, &[]).unwrap();
        }
        transaction.commit(Durability::Deferred).unwrap();
        let (query, view) = (query(&rawdoc! { "a": 5 }), store.snapshot().unwrap());
        let rows = find(&query, &query.filter.single_equality().unwrap(), &view, &collection, &CallContext::default())?;
        Ok(rows.map(|rows| rows.records))
    }

    #[test]
    fn only_an_index_whose_entries_name_exactly_the_matching_records_is_used() {
        for (serves, options) in [
            (true, rawdoc! { "key": { "a": 1 } }),
            (true, rawdoc! { "key": { "a": -1, "b": 1 } }),
            (true, rawdoc! { "key": { "a": 1 }, "unique": true }),
            (false, rawdoc! { "key": { "b": 1, "a": 1 } }),
            (false, rawdoc! { "key": { "a.b": 1 } }),
            (false, rawdoc! { "key": { "a": 1 }, "sparse": true }),
            (false, rawdoc! { "key": { "a": 1 }, "multikey": [1_i64] }),
            (false, rawdoc! { "key": { "a": 1 }, "truncated": true }),
            (false, rawdoc! { "key": { "a": 1 }, "partialFilterExpression": { "a": 5 } }),
        ] {
            assert_eq!(found(&options, &[]).unwrap(), serves.then_some(0), "{options:?}");
        }
    }

    #[test]
    fn a_damaged_entry_and_one_without_a_record_are_corruption_and_many_entries_are_planned() {
        let (index, value) = (rawdoc! { "key": { "a": 1 } }, key(&rawdoc! { "_id": 5 }));
        let length = u8::try_from(value.len()).unwrap();
        let entry = |id: i32| [&value[..], &key(&rawdoc! { "_id": id }), &[length]].concat();
        let damaged = [&value[..], &[0xf0]].concat();
        for entries in [[entry(1)], [damaged]] {
            assert_eq!(found(&index, &entries).unwrap_err().kind(), ErrorKind::Corrupt);
        }
        assert_eq!(found(&index, &(0..9).map(entry).collect::<Vec<_>>()).unwrap(), None);
    }
}
