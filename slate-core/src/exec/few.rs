use std::ops::ControlFlow;

use slate_query::raw::{Doc, SmallBytes};
use slate_store::{Keyspace, Points, View};

use super::{
    Rows,
    probe::{ViewProbe, bounds},
};
use crate::{
    Error, Result,
    catalog::CollectionInfo,
    entry::Entry,
    interrupt::Interrupt,
    plan::{FEW, Few, OnlyEntries, only_entries, only_record},
};

/// The records of a question whose keys are at hand, or are those of a few entries of an index: found without a plan.
pub(crate) struct FewRows<V: View> {
    points: V::Points,
    records: usize,
    /// How many have been moved to; one more behind the last.
    moved: usize,
}

/// What ended a walk before the entries did.
#[derive(PartialEq, Eq)]
enum End {
    OfFew,
    OfLimit,
}

impl<V: View> FewRows<V> {
    /// `None` where the question has to be planned; what was counted to find that out is told to `probe`.
    pub(crate) fn find(
        probe: &ViewProbe<'_, V>,
        collection: &CollectionInfo,
        Few { value, limit }: Few<'_>,
        interrupt: &Interrupt,
    ) -> Result<Option<Self>> {
        let view = probe.view;
        if let Some(key) = only_record(value) {
            interrupt.check()?;
            return Self::load(view, collection.records, &[&key]).map(Some);
        }
        let Some(entries) = only_entries(collection, value) else { return Ok(None) };
        // A limit above few may make an answer cost less than a look at its entries in vain.
        if limit.is_some_and(|limit| limit > FEW as u64) && entries.were_many() {
            return Ok(None);
        }
        interrupt.check()?;
        let found = Self::of_entries(view, collection, &entries, limit)?;
        if found.is_none() {
            probe.note(entries.index.keyspace, entries.range(), FEW as u64 + 1);
        }
        Ok(found)
    }

    /// The records that entries of an index name, as far as the limit goes; `None` where those are more than [`FEW`].
    fn of_entries(
        view: &V,
        collection: &CollectionInfo,
        entries: &OnlyEntries<'_>,
        limit: Option<u64>,
    ) -> Result<Option<Self>> {
        let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        let mut keys = <[SmallBytes; FEW]>::default();
        let mut found = 0;
        let end = view.each(entries.index.keyspace, bounds(&entries.range()), |key, value| {
            match (keys.get_mut(found), Entry::parse(entries.index, key, value)) {
                (Some(place), Ok(entry)) => *place = entry.record_key.into(),
                (None, Ok(_)) => return ControlFlow::Break(Ok(End::OfFew)),
                (_, Err(damaged)) => return ControlFlow::Break(Err(damaged)),
            }
            found += 1;
            if found < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(Ok(End::OfLimit)) }
        })?;
        if end.transpose()? == Some(End::OfFew) {
            return Ok(None);
        }
        let mut wanted = [&[][..]; FEW];
        wanted.iter_mut().zip(&keys).for_each(|(wanted, key)| *wanted = key);
        let rows = Self::load(view, collection.records, wanted.get(..found).unwrap_or_default())?;
        if rows.records < found {
            return Err(Error::dangling(&collection.name));
        }
        Ok(Some(rows))
    }

    /// The records of these keys, as far as they are there.
    fn load(view: &V, records: Keyspace, keys: &[&[u8]]) -> Result<Self> {
        let mut points = view.points(records)?;
        points.load(keys)?;
        let found = (0..keys.len()).take_while(|at| points.loaded(*at).is_some()).count();
        Ok(Self { points, records: found, moved: 0 })
    }
}

impl<V: View> Rows for FewRows<V> {
    fn advance(&mut self) -> Result<bool> {
        self.moved = self.moved.saturating_add(1).min(self.records + 1);
        Ok(self.moved <= self.records)
    }

    fn current(&self) -> Option<&[u8]> {
        let stored = self.moved.checked_sub(1).and_then(|at| self.points.loaded(at));
        stored.map(|stored| Doc::stored(stored).bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use bson::rawdoc;
    use slate_query::filter::Filter;
    use slate_store::{Durability, Isolation, Store, Transaction, memory::MemoryStore};

    use super::*;
    use crate::{ErrorKind, catalog::IndexInfo, entry::record_key, plan::Query};

    const RECORDS: Keyspace = Keyspace(7);
    const ENTRIES: Keyspace = Keyspace(8);

    fn collection() -> CollectionInfo {
        let index = rawdoc! { "name": "a_1", "keyspace": i64::from(ENTRIES.0), "key": { "a": 1 } };
        let index = IndexInfo::read(Doc::from(&index)).unwrap().unwrap();
        CollectionInfo { indexes: vec![Arc::new(index)], ..CollectionInfo::new("c", RECORDS) }
    }

    /// The rows of `{a: 5}`, where these are the index's entries and no record is there.
    fn find(entries: &[&[u8]]) -> Result<Option<usize>> {
        let store = MemoryStore::default();
        let mut transaction = store.begin(Isolation::Snapshot, Duration::ZERO).unwrap();
        for entry in entries {
            transaction.put(ENTRIES, entry, &[]).unwrap();
        }
        transaction.commit(Durability::Deferred).unwrap();
        let query = Query::of(Filter::parse(Doc::from(&rawdoc! { "a": 5 })).unwrap());
        let view = store.snapshot().unwrap();
        let few = query.few().unwrap();
        let found = FewRows::find(&ViewProbe::new(&view), &collection(), few, &Interrupt::default())?;
        Ok(found.map(|rows| rows.records))
    }

    #[test]
    fn an_entry_that_is_damaged_or_has_no_record_is_told() {
        let key = |value: i32| record_key(Doc::from(&rawdoc! { "v": value }).get("v").unwrap()).unwrap();
        let (value, record) = (key(5), key(1));
        let length = u8::try_from(value.len()).unwrap();
        assert_eq!(find(&[]).unwrap(), Some(0));
        let dangling = [&value[..], &record, &[length]].concat();
        let damaged = [&value[..], &[0xf0]].concat();
        for entries in [[&dangling[..]], [&damaged[..]]] {
            assert_eq!(find(&entries).unwrap_err().kind(), ErrorKind::Corrupt);
        }
        // Beyond few it is for a plan to say.
        let many: Vec<Vec<u8>> = (0..9).map(|id| [&value[..], &key(id), &[length]].concat()).collect();
        assert_eq!(find(&many.iter().map(Vec::as_slice).collect::<Vec<_>>()).unwrap(), None);
    }
}
