//! What an access path is expected to cost, in steps of a cursor over an index.
//!
//! Entries and records are estimated by a probe that counts no further than [`PROBE_CAP`], and beyond it by the
//! catalog's statistics. Both are the same on every store.

use std::borrow::Cow;

use slate_store::Keyspace;

use super::{
    ByteRange, Context, Output,
    access::{Access, AccessPath},
    bounds::record_ranges,
    rules,
};
use crate::{
    Result,
    catalog::{CollectionInfo, KeyStatistics},
};

/// How far entries are counted before the statistics are asked.
pub(super) const PROBE_CAP: u64 = 1_000;

/// The record of an id: a descent into the records.
pub(super) const FETCH: u64 = 7;
/// A record that a scan steps onto.
const SCANNED: u64 = 2;
/// A record that a filter looks at.
const FILTERED: u64 = 1;
/// A row put in order: copied and compared.
const SORTED: u64 = 2;
/// Of rows that a filter still has to see, one in so many is expected to pass.
const PASSES: u64 = 4;
/// Of an index's entries, one in so many is expected to pass a check.
const CHECKED: u64 = 3;
/// From value to value a walk steps onto one entry in so many.
const DIFFERENT: u64 = 8;

/// How many keys an access path reads, and how many records they name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reads {
    pub(super) keys: u64,
    pub(super) records: u64,
}

/// What an access path costs for each key and record that it reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rates {
    /// So many keys are read at most: rows that come as they are wanted need not all be read.
    most: Option<u64>,
    key: u64,
    /// One key in so many is read.
    spread: u64,
    record: u64,
    /// One record in so many passes the filter.
    passes: u64,
    /// For each that passes.
    sort: u64,
}

impl Rates {
    pub(super) fn of(access: &Access, context: &Context<'_>) -> Self {
        let query = context.query;
        let order = query.order();
        let ordered = order.map(|sort| access.path.ordered_by(sort, access.direction).fields);
        let sorted = order.zip(ordered).is_none_or(|(sort, fields)| fields == sort.fields().len());
        let residual = !access.proven.are_all(query.filter.conjuncts().len());
        let passes = if residual { PASSES } else { 1 };
        // Rows that come as they are wanted need not all be read; of those that come in groups, whole groups.
        let group = match ordered {
            Some(fields) if !sorted && fields > 0 => group(&access.path, fields, context.collection),
            _ => sorted.then_some(0),
        };
        let reach = if lists_records(&query.output) { query.window().reach() } else { None };
        let most = reach.zip(group).map(|(rows, group)| rows.saturating_mul(passes).saturating_add(group).max(1));
        if rules::reads_keys_alone(access, query) {
            let spread = if matches!(query.output, Output::Distinct { .. }) { DIFFERENT } else { 1 };
            return Self { most, key: 1, spread, record: 0, passes, sort: 0 };
        }
        let (key, read) = match &access.path {
            AccessPath::Records { .. } => (0, SCANNED),
            AccessPath::Points { .. } => (0, FETCH),
            AccessPath::Index { .. } | AccessPath::Merge { .. } => (1, FETCH),
        };
        let record = if residual { read + FILTERED } else { read };
        let sort = match ordered {
            _ if sorted => 0,
            Some(fields) if fields > 0 => 1,
            _ => SORTED,
        };
        Self { most, key, spread: 1, record, passes, sort }
    }

    /// The expected cost.
    pub(super) fn cost(&self, reads: Reads) -> u64 {
        let within = |reads: u64| self.most.map_or(reads, |most| reads.min(most));
        let (keys, records) = (within(reads.keys), within(reads.records));
        let reading = (keys.saturating_mul(self.key) / self.spread).saturating_add(records.saturating_mul(self.record));
        reading.saturating_add((records / self.passes).saturating_mul(self.sort))
    }

    /// Whether every key is read.
    pub(super) fn reads_all(&self) -> bool {
        self.most.is_none()
    }

    /// How far keys have to be counted.
    pub(super) fn cap(&self) -> u64 {
        self.most.map_or(PROBE_CAP, |most| most.min(PROBE_CAP))
    }
}

/// About how many rows share the fields that a path's order begins with, where that can be told.
fn group(path: &AccessPath, fields: usize, collection: &CollectionInfo) -> Option<u64> {
    match path {
        // Fields bound to one value come before those that the order is about.
        AccessPath::Index { index, bounds, .. } => {
            let constant = (0..index.pattern.fields().len()).take_while(|&field| bounds.is_point(field)).count();
            let statistics = collection.index_statistics(index)?;
            Some(statistics.group(&index.pattern, constant + fields))
        }
        AccessPath::Records { .. } | AccessPath::Points { .. } | AccessPath::Merge { .. } => None,
    }
}

fn lists_records(output: &Output) -> bool {
    match output {
        Output::Whole | Output::Project { .. } => true,
        Output::Count | Output::Distinct { .. } => false,
    }
}

/// The keys that an access path by the records, or by one index, reads.
pub(super) enum Keys<'a> {
    Known(u64),
    /// They have to be counted.
    Within(Stretch<'a>),
    /// Those of several paths.
    OfInputs,
}

/// A part of a keyspace.
pub(super) struct Stretch<'a> {
    pub(super) keyspace: Keyspace,
    pub(super) ranges: Cow<'a, [ByteRange]>,
    pub(super) statistics: Option<&'a KeyStatistics>,
}

impl<'a> Keys<'a> {
    pub(super) fn of(path: &'a AccessPath, context: &'a Context<'_>) -> Self {
        let collection = context.collection;
        match path {
            AccessPath::Records { bounds: None } => Self::of_all(context, collection.record_statistics()),
            AccessPath::Records { bounds } => Self::Within(Stretch {
                keyspace: collection.records,
                ranges: record_ranges(bounds.as_ref()).into(),
                statistics: collection.record_statistics(),
            }),
            AccessPath::Points { ids } => Self::Known(u64::try_from(ids.len()).unwrap_or(u64::MAX)),
            AccessPath::Index { index, bounds, .. } if bounds.used() == 0 => {
                Self::of_all(context, collection.index_statistics(index).or(collection.record_statistics()))
            }
            AccessPath::Index { index, bounds, .. } => Self::Within(Stretch {
                keyspace: index.keyspace,
                ranges: bounds.ranges().into(),
                statistics: collection.index_statistics(index),
            }),
            AccessPath::Merge { .. } => Self::OfInputs,
        }
    }

    /// As many as the collection has records, or its index entries.
    fn of_all(context: &Context<'_>, statistics: Option<&KeyStatistics>) -> Self {
        match statistics {
            Some(statistics) => Self::Known(statistics.keys),
            None => Self::Within(Stretch {
                keyspace: context.collection.records,
                ranges: record_ranges(None).into(),
                statistics: None,
            }),
        }
    }
}

impl Stretch<'_> {
    /// About how many keys lie within it; `None` where nothing is known of the keyspace.
    pub(super) fn estimate(&self) -> Option<u64> {
        self.statistics.map(|statistics| statistics.estimate(&self.ranges))
    }

    /// How many keys lie within it, counted up to `cap`.
    pub(super) fn count(&self, context: &Context<'_>, cap: u64) -> Result<u64> {
        context.probe.count(self.keyspace, &self.ranges, cap)
    }

    /// Whether it is everything.
    pub(super) fn is_whole(&self) -> bool {
        matches!(&*self.ranges, [all] if all.is_all())
    }
}

/// What so many keys of an access path come to: entries that do not pass its checks name no record.
pub(super) fn reads(path: &AccessPath, keys: u64) -> Reads {
    match path {
        AccessPath::Index { checks, .. } => {
            Reads { keys, records: checks.iter().fold(keys, |keys, _| keys.div_ceil(CHECKED)) }
        }
        AccessPath::Points { .. } => Reads { keys: 0, records: keys },
        AccessPath::Records { .. } | AccessPath::Merge { .. } => Reads { keys, records: keys },
    }
}
