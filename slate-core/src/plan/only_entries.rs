//! Questions for one value of one field that one index alone is of use for. They are the most frequent there are, after those
//! for an `_id`, and where the index has few entries of the value there is nothing to weigh.

use std::sync::Arc;

use slate_query::{filter::OneValue, interval::Interval, path::Path, pattern::Direction};

use super::{Access, AccessPath, ByteRange, Conjuncts, IndexBounds, Probe, candidates::ID};
use crate::{
    Result,
    catalog::{CollectionInfo, IndexInfo},
};

/// So many entries of one value are few: their records are fetched, whatever a scan would take instead.
pub(crate) const FEW: usize = 8;

/// The entries of one value of an index's first field.
#[derive(Debug)]
pub(crate) struct OnlyEntries<'c> {
    pub(crate) index: &'c Arc<IndexInfo>,
    /// The keys of the value.
    value: Interval,
}

/// The entries that name every record which can match, where that can be told without listing all ways: where one value of
/// one field is asked for, no index but one has that field, and none of the others is of use for anything else.
pub(crate) fn only_entries<'c>(collection: &'c CollectionInfo, value: OneValue<'_>) -> Option<OnlyEntries<'c>> {
    let is_path = |path: &Path| path.as_str().as_bytes() == value.path();
    let has_path = |index: &&Arc<IndexInfo>| index.pattern.fields().iter().any(|(field, _)| is_path(field));
    let mut having = collection.indexes.iter().filter(has_path);
    let (Some(index), None) = (having.next(), having.next()) else { return None };
    let is_plain = index.pattern.fields().first().is_some_and(|(first, _)| is_path(first))
        && !index.sparse
        && !index.truncated
        && !index.is_multikey();
    let is_partial = |index: &Arc<IndexInfo>| index.partial.is_some();
    if value.path() == ID.as_bytes() || !is_plain || collection.indexes.iter().any(is_partial) {
        return None;
    }
    Some(OnlyEntries { index, value: Interval::point(value.key()?) })
}

impl OnlyEntries<'_> {
    /// Where they lie.
    pub(crate) fn range(&self) -> ByteRange {
        let direction = self.index.pattern.fields().first().map_or(Direction::Ascending, |(_, direction)| *direction);
        ByteRange::component(&self.value, direction)
    }

    /// Whether the statistics know of more. They may be long past.
    pub(crate) fn were_many(&self) -> bool {
        let statistics = self.index.statistics.as_ref();
        statistics.is_some_and(|statistics| statistics.at_least(&self.range()) > FEW as u64)
    }

    /// Whether there are few.
    pub(super) fn are_few(&self, probe: &dyn Probe) -> Result<bool> {
        let is_one = self.index.unique && self.index.pattern.fields().len() == 1;
        let count = || probe.count(self.index.keyspace, &[self.range()], FEW as u64 + 1);
        Ok(is_one || (!self.were_many() && count()? <= FEW as u64))
    }

    pub(super) fn into_access(self) -> Access {
        let bounds = IndexBounds::new(self.index, vec![self.value.into()]);
        let path = AccessPath::Index { index: Arc::clone(self.index), bounds, checks: Vec::new() };
        Access::of_path(path, Conjuncts::one(0))
    }
}

#[cfg(test)]
mod tests {
    use bson::{RawDocumentBuf, doc};
    use slate_query::{filter::Filter, raw::Doc};
    use slate_store::Keyspace;

    use super::*;
    use crate::plan::{Output, Query, candidates::contenders};

    fn index(number: u32, options: &bson::Document) -> Arc<IndexInfo> {
        let mut described = doc! { "name": number.to_string(), "keyspace": i64::from(number) };
        described.extend(options.clone());
        let described = RawDocumentBuf::try_from(&described).unwrap();
        Arc::new(IndexInfo::read(Doc::from(&described)).unwrap().unwrap())
    }

    #[test]
    fn they_are_told_as_all_ways_are_listed() {
        let indexes = [
            doc! { "key": { "a": 1 } },
            doc! { "key": { "a": -1, "b": 1 } },
            doc! { "key": { "b": 1 } },
            doc! { "key": { "b": 1, "a": 1 } },
            doc! { "key": { "a": 1 }, "unique": true },
            doc! { "key": { "a": 1, "c": 1 }, "unique": true },
            doc! { "key": { "a": 1 }, "sparse": true },
            doc! { "key": { "a.b": 1 }, "sparse": true },
            doc! { "key": { "a": 1 }, "multikey": [1_i64] },
            doc! { "key": { "a": 1 }, "truncated": true },
            doc! { "key": { "c": 1 }, "partialFilterExpression": { "a": 5 } },
            doc! { "key": { "a": 1 }, "partialFilterExpression": { "c": { "$gt": 5 } } },
        ];
        let filters = [
            doc! { "a": 5 },
            doc! { "a": null },
            doc! { "a": [1] },
            doc! { "a": { "b": 1 } },
            doc! { "a": "x".repeat(3_000) },
            doc! { "a": { "$in": [5] } },
            doc! { "a": { "$in": [5, 6] } },
            doc! { "a": { "$gt": 5 } },
            doc! { "a": { "$ne": 5 } },
            doc! { "a": { "$exists": true } },
            doc! { "a": { "$elemMatch": { "$eq": 5 } } },
            doc! { "a": { "$all": [5] } },
            doc! { "a": { "$regex": "^x" } },
            doc! { "$or": [{ "a": 5 }, { "a": 6 }] },
            doc! { "$or": [{ "a": 5 }] },
            doc! { "a": { "$gte": 5, "$lte": 5 } },
            doc! { "a": { "$not": { "$eq": 5 } } },
            doc! { "a": { "$nin": [5] } },
            doc! { "a.b": 5 },
            doc! { "a.0": 5 },
            doc! { "a": 5, "b": 6 },
            doc! { "_id": 5 },
            doc! {},
        ];
        let mut told = 0;
        for (first, second) in indexes.iter().flat_map(|first| indexes.iter().map(move |second| (first, second))) {
            let mut collection = CollectionInfo::new("c", Keyspace(9));
            collection.indexes = vec![index(1, first), index(2, second)];
            for filter in &filters {
                let raw = RawDocumentBuf::try_from(filter).unwrap();
                let query = Query::of(Filter::parse(Doc::from(&raw)).unwrap());
                if let Some(only) = query.one_value().and_then(|value| only_entries(&collection, value)) {
                    let listed = contenders(&collection, &query);
                    let range = only.range();
                    let only = only.into_access();
                    assert!(
                        matches!(&only.path, AccessPath::Index { bounds, .. } if *bounds.ranges() == [range]),
                        "{filter} {first} {second}"
                    );
                    let told_of = if only.path.is_of_one_record() { vec![only] } else { vec![Access::scan(), only] };
                    assert_eq!(format!("{told_of:?}"), format!("{listed:?}"), "{filter} {first} {second}");
                    told += 1;
                }
                let counted = Query { output: Output::Count, ..query };
                assert!(counted.one_value().is_none());
            }
        }
        assert!(told > 50, "{told}");
    }
}
