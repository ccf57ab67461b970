//! A candidate: the finished plan of a query by one access path, as data that the rules change in place, and its expected cost. Only the
//! candidate that is chosen becomes a tree of nodes, so that weighing many of them costs little.
//!
//! The unit of costs is one step of a cursor over an index. A probe counts keys up to [`PROBE_CAP`]; larger numbers are estimated from
//! statistics. Counts and estimates are the same on every store.

use std::{borrow::Cow, cell::RefCell};

use slate_query::pipeline::Kept;
use slate_store::{Keyspace, View};

use super::{
    Access, AccessPath, Context, CountedKeys, CoveredField, IdPlan, IndexScan, Output, Plan, Query, RawPlan,
    access::record_ranges,
    keys_only::drawn,
    rules::{self, FiredRules, Outcome},
};
use crate::{
    Result,
    catalog::{CollectionInfo, KeyStatistics},
    key_range::{KeyRange, count_keys},
};

#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) access: Access,
    /// Whether records have to satisfy conditions that the access path does not decide.
    pub(super) is_filtered: bool,
    /// How records are sorted; `None` if no sort is needed.
    pub(super) sorting: Option<Sorting>,
    /// Maximum number of records of the index scan; `None` for all.
    pub(super) scan_limit: Option<u64>,
    pub(super) source: RowSource,
    /// The rules that changed the candidate.
    pub(super) rules: FiredRules,
}

/// A sort of records by the order of the query. See [`RawPlan::Sort`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sorting {
    pub(super) presorted: usize,
    pub(super) limit: Option<u64>,
}

/// What the output of the query is made from.
#[derive(Clone, Debug)]
pub(super) enum RowSource {
    /// No rows.
    Nothing {
        reason: &'static str,
    },
    Records,
    /// The entries of an index, which contain these fields.
    Covered(Vec<CoveredField>),
    CountedKeys,
    /// The entries of an index, seeking from one value to the next.
    DistinctKeys,
    /// The values of this field in every entry of an index.
    DistinctEntries(usize),
}

impl Candidate {
    /// Creates the plan that is correct by construction (read by the access path, filter, sort, slice, project), and applies
    /// the rules in order.
    pub(super) fn new(access: Access, query: &Query) -> Self {
        let sorting = query.sort.as_ref().map(|_| Sorting::default());
        let (is_filtered, rules) = (!query.filter.is_empty(), FiredRules::default());
        let mut candidate = Self { access, is_filtered, sorting, scan_limit: None, source: RowSource::Records, rules };
        for (number, rule) in rules::ALL.iter().enumerate() {
            let outcome = (rule.apply)(&mut candidate, query);
            if outcome != Outcome::Unchanged {
                candidate.rules.add(number);
            }
            if outcome == Outcome::Finished {
                break;
            }
        }
        candidate
    }

    /// Returns whether every record of the access path is a row, in the order of the path.
    pub(super) fn reads_only(&self) -> bool {
        !self.is_filtered && self.sorting.is_none()
    }

    /// Returns whether the result is made from keys, without reading records.
    pub(super) fn is_keys_only(&self) -> bool {
        match self.source {
            RowSource::Nothing { .. } | RowSource::Records => false,
            RowSource::Covered(_)
            | RowSource::CountedKeys
            | RowSource::DistinctKeys
            | RowSource::DistinctEntries(_) => true,
        }
    }

    /// Returns the nodes of the plan.
    pub(super) fn into_plan(self, query: &Query) -> Plan {
        let window = query.window;
        let (mut leaf, exact_for) = (self.access.path.into_leaf(self.access.direction), self.access.exact_for);
        if let RawPlan::Fetch { ids: IdPlan::Index(IndexScan { limit, .. }) } = &mut leaf {
            *limit = self.scan_limit;
        }
        match (self.source, leaf, &query.output) {
            (RowSource::Nothing { reason }, _, output) => output.of(RawPlan::Eof { reason }, query),
            (RowSource::Covered(fields), RawPlan::Fetch { ids: IdPlan::Index(scan) }, output) => {
                let document = match output {
                    Output::Project { document, .. } => document.clone(),
                    _ => drawn(output.included().unwrap_or_default()),
                };
                Plan::Covered { scan, fields, window, document }
            }
            (RowSource::CountedKeys, RawPlan::Fetch { ids }, _) => {
                let keys = match ids {
                    IdPlan::Index(scan) if scan.finds_once() => CountedKeys::Entries(scan),
                    ids => CountedKeys::Ids(ids),
                };
                Plan::CountKeys { keys, window }
            }
            (RowSource::CountedKeys, RawPlan::Scan { bounds, .. }, _) => {
                Plan::CountKeys { keys: CountedKeys::Records { bounds }, window }
            }
            (RowSource::DistinctKeys, RawPlan::Fetch { ids: IdPlan::Index(scan) }, Output::Distinct { values, .. }) => {
                Plan::DistinctKeys { scan, values: values.clone() }
            }
            (
                RowSource::DistinctEntries(field),
                RawPlan::Fetch { ids: IdPlan::Index(scan) },
                Output::Distinct { path, values },
            ) => Plan::DistinctEntries { scan, field, path: path.clone(), values: values.clone() },
            (_, mut input, output) => {
                if self.is_filtered
                    && let Some(filter) = query.filter.without(|conjunct| exact_for.contains(conjunct))
                {
                    input = RawPlan::Filter { input: Box::new(input), filter };
                }
                if let (Some(Sorting { presorted, limit }), Some(sort)) = (self.sorting, &query.sort) {
                    let kept = match output {
                        Output::Fields(fields) => Kept::paths(fields),
                        _ => Kept::default(),
                    };
                    input = RawPlan::Sort { input: Box::new(input), sort: sort.clone(), presorted, limit, kept };
                }
                if !window.is_all() {
                    input = RawPlan::Slice { input: Box::new(input), window };
                }
                output.of(input, query)
            }
        }
    }
}

impl Output {
    /// Returns the fields to which the output is limited; `None` if it is not limited to whole fields.
    pub(super) fn included(&self) -> Option<&[slate_query::path::Path]> {
        match self {
            Self::Project { projection, .. } => projection.included(),
            Self::Fields(fields) => Some(fields),
            Self::Whole | Self::Key | Self::Count | Self::Distinct { .. } => None,
        }
    }

    /// Returns the plan that makes the output from records.
    fn of(&self, input: RawPlan, query: &Query) -> Plan {
        match self {
            Self::Whole | Self::Key | Self::Fields(_) => Plan::Whole { input },
            Self::Project { projection, .. } if projection.is_identity() => Plan::Whole { input },
            Self::Project { projection, document } => Plan::Project {
                input,
                projection: projection.clone(),
                document: document.clone(),
                filter: query.filter.clone(),
            },
            Self::Count => Plan::Count { input },
            Self::Distinct { path, values } => Plan::Distinct { input, path: path.clone(), values: values.clone() },
        }
    }
}

impl AccessPath {
    /// Returns whether every key of the path has a record, because the key is read from records or entries and not from the filter.
    pub(super) fn is_of_keys(&self) -> bool {
        match self {
            Self::Records { .. } | Self::Index { .. } => true,
            Self::Points { .. } => false,
            Self::Merge { inputs, .. } => inputs.iter().all(Self::is_of_keys),
        }
    }
}

/// Maximum number of keys that a probe counts, which takes about as long as executing a small query. Larger numbers
/// are estimated from statistics.
pub(super) const PROBE_CAP: u64 = 1_000;

/// Cost of fetching a record by its key: a descent into the records.
pub(super) const FETCH_COST: u64 = 7;

/// Cost of stepping to a record in a scan: records are larger than entries.
const SCAN_COST: u64 = 2;

/// Cost of evaluating the filter on a record.
const FILTER_COST: u64 = 1;

/// Cost of sorting a row: copying and comparing.
const SORT_COST: u64 = 2;

/// Cost of sorting a row in a sort within groups, which are small.
const GROUP_SORT_COST: u64 = 1;

/// One in this many records is expected to match a filter without an index.
const FILTER_RATIO: u64 = 4;

/// One in this many entries is expected to pass a check.
const CHECK_RATIO: u64 = 3;

/// One in this many entries is read by a walk that seeks from each distinct value to the next.
const DISTINCT_RATIO: u64 = 8;

/// The number of keys that an access path reads, and of records that they name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reads {
    pub(super) keys: u64,
    pub(super) records: u64,
}

/// The cost of a candidate per key and per record that it reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rates {
    /// Maximum number of records that are read: a limit ends the walk if rows come in the requested order. `None` if all are read.
    most: Option<u64>,
    /// Maximum number of keys that are read: more than records if checks reject some. `None` if all are read, as by a merge.
    most_keys: Option<u64>,
    key: u64,
    /// One in this many keys is read.
    key_ratio: u64,
    record: u64,
    /// One in this many records matches the residual filter.
    match_ratio: u64,
    /// Cost per matching record.
    sort: u64,
}

impl Rates {
    pub(super) fn of(candidate: &Candidate, context: &Context<'_>) -> Self {
        let (query, path) = (context.query, &candidate.access.path);
        let match_ratio = if candidate.is_filtered { FILTER_RATIO } else { 1 };
        // A sort within groups reads to the end of a group.
        let overrun = match candidate.sorting {
            None => Some(0),
            Some(Sorting { presorted: 0, .. }) => None,
            // Few rows are equal in all fields.
            Some(Sorting { presorted, .. })
                if Some(presorted) == query.sort.as_ref().map(|sort| sort.fields().len()) =>
            {
                Some(0)
            }
            Some(Sorting { presorted, .. }) => group_size(path, presorted, context.collection),
        };
        let reach = if lists_records(&query.output) { query.window.reach() } else { None };
        let most =
            reach.zip(overrun).map(|(rows, overrun)| rows.saturating_mul(match_ratio).saturating_add(overrun).max(1));
        let most_keys = match path {
            AccessPath::Index { checks, .. } => {
                most.map(|most| (0..checks.selective()).fold(most, |keys, _| keys.saturating_mul(CHECK_RATIO)))
            }
            AccessPath::Records { .. } | AccessPath::Points { .. } => most,
            AccessPath::Merge { .. } => None,
        };
        if candidate.is_keys_only() {
            let key_ratio = if matches!(candidate.source, RowSource::DistinctKeys) { DISTINCT_RATIO } else { 1 };
            return Self { most, most_keys, key: 1, key_ratio, record: 0, match_ratio, sort: 0 };
        }
        let (key, read) = match path {
            AccessPath::Records { .. } => (0, SCAN_COST),
            AccessPath::Points { .. } => (0, FETCH_COST),
            AccessPath::Index { .. } | AccessPath::Merge { .. } => (1, FETCH_COST),
        };
        let record = if candidate.is_filtered { read + FILTER_COST } else { read };
        let sort = match candidate.sorting {
            None => 0,
            Some(Sorting { presorted: 0, .. }) => SORT_COST,
            Some(_) => GROUP_SORT_COST,
        };
        Self { most, most_keys, key, key_ratio: 1, record, match_ratio, sort }
    }

    pub(super) fn cost(&self, reads: Reads) -> u64 {
        let within = |reads: u64, most: Option<u64>| most.map_or(reads, |most| reads.min(most));
        let (keys, records) = (within(reads.keys, self.most_keys), within(reads.records, self.most));
        let of_keys = keys.saturating_mul(self.key) / self.key_ratio;
        of_keys
            .saturating_add(records.saturating_mul(self.record))
            .saturating_add((records / self.match_ratio).saturating_mul(self.sort))
    }

    /// Returns whether every key is read.
    pub(super) fn reads_all(&self) -> bool {
        self.most_keys.is_none()
    }

    /// Returns the largest number of keys that have to be counted to know the cost.
    pub(super) fn cap(&self) -> u64 {
        self.most_keys.map_or(PROBE_CAP, |most| most.min(PROBE_CAP))
    }
}

/// Estimates how many rows are equal in the first `fields` of a sort. `None` without statistics.
fn group_size(path: &AccessPath, fields: usize, collection: &CollectionInfo) -> Option<u64> {
    match path {
        // Fields bound to one value precede the sort fields in the index.
        AccessPath::Index { index, bounds, .. } => {
            let constant = (0..index.pattern.fields().len()).take_while(|&field| bounds.is_point(field)).count();
            Some(collection.index_statistics(index)?.group(&index.pattern, constant + fields))
        }
        AccessPath::Records { .. } | AccessPath::Points { .. } | AccessPath::Merge { .. } => None,
    }
}

fn lists_records(output: &Output) -> bool {
    match output {
        Output::Whole | Output::Key | Output::Fields(_) | Output::Project { .. } => true,
        Output::Count | Output::Distinct { .. } => false,
    }
}

/// The keys of an access path.
pub(super) enum Keys<'a> {
    Known(u64),
    /// Keys that have to be counted.
    Within(Ranges<'a>),
    /// The keys of the inputs of a merge.
    OfInputs,
}

/// Key ranges of a keyspace, and their estimate from statistics.
pub(super) struct Ranges<'a> {
    keyspace: Keyspace,
    ranges: Cow<'a, [KeyRange]>,
    statistics: Option<&'a KeyStatistics>,
}

impl<'a> Keys<'a> {
    pub(super) fn of(path: &'a AccessPath, context: &'a Context<'_>) -> Self {
        let collection = context.collection;
        let of_records = collection.record_statistics();
        match path {
            AccessPath::Records { bounds: None } => Self::of_all(context, of_records),
            AccessPath::Records { bounds } => Self::Within(Ranges {
                keyspace: collection.records,
                ranges: record_ranges(bounds.as_ref()).into(),
                statistics: of_records,
            }),
            AccessPath::Points { ids } => Self::Known(u64::try_from(ids.len()).unwrap_or(u64::MAX)),
            AccessPath::Index { index, bounds, .. } if !bounds.are_limited() => {
                Self::of_all(context, collection.index_statistics(index).or(of_records))
            }
            AccessPath::Index { index, bounds, .. } => Self::Within(Ranges {
                keyspace: index.keyspace,
                ranges: bounds.ranges().into(),
                statistics: collection.index_statistics(index),
            }),
            AccessPath::Merge { .. } => Self::OfInputs,
        }
    }

    /// Returns the number of keys from statistics; without statistics, all records, which have to be counted.
    fn of_all(context: &Context<'_>, statistics: Option<&KeyStatistics>) -> Self {
        match statistics {
            Some(statistics) => Self::Known(statistics.keys),
            None => Self::Within(Ranges {
                keyspace: context.collection.records,
                ranges: record_ranges(None).into(),
                statistics: None,
            }),
        }
    }
}

impl Ranges<'_> {
    /// Estimates the number of keys within the ranges. `None` without statistics.
    pub(super) fn estimate(&self) -> Option<u64> {
        self.statistics.map(|statistics| statistics.estimate(&self.ranges))
    }

    /// Counts the keys, up to `cap`.
    pub(super) fn count(&self, context: &Context<'_>, cap: u64) -> Result<u64> {
        context.probe.count(self.keyspace, &self.ranges, cap)
    }

    /// Counts the keys up to `cap`, and estimates the rest.
    pub(super) fn count_or_estimate(&self, context: &Context<'_>, cap: u64) -> Result<u64> {
        let counted = self.count(context, cap)?;
        let estimate = if counted < cap { None } else { self.estimate() };
        Ok(estimate.map_or(counted, |estimate| estimate.max(counted)))
    }

    /// Returns whether the ranges are the whole keyspace.
    pub(super) fn is_whole(&self) -> bool {
        matches!(&*self.ranges, [all] if all.is_all())
    }
}

/// Converts a number of keys to the keys and records read: entries that fail the checks do not fetch a record.
pub(super) fn reads(path: &AccessPath, keys: u64) -> Reads {
    match path {
        AccessPath::Index { checks, .. } => {
            Reads { keys, records: (0..checks.selective()).fold(keys, |keys, _| keys.div_ceil(CHECK_RATIO)) }
        }
        AccessPath::Points { .. } => Reads { keys: 0, records: keys },
        AccessPath::Records { .. } | AccessPath::Merge { .. } => Reads { keys, records: keys },
    }
}

/// Counts keys up to a cap.
pub(crate) trait Probe {
    /// Counts the keys within the ranges, up to `cap`. The result is the same on every backend.
    fn count(&self, keyspace: Keyspace, ranges: &[KeyRange], cap: u64) -> Result<u64>;
}

/// Counts keys in a view for the planner. Counts are cached, because many access paths of a query have the same bounds.
pub(super) struct ViewProbe<'v, V> {
    view: &'v V,
    counted: RefCell<Vec<Counted>>,
}

/// The number of keys within ranges, counted up to a cap.
struct Counted {
    keyspace: Keyspace,
    ranges: Box<[KeyRange]>,
    cap: u64,
    keys: u64,
}

impl Counted {
    /// Returns the count up to another cap, if this count determines it.
    fn up_to(&self, cap: u64) -> Option<u64> {
        (self.keys < self.cap || cap <= self.cap).then(|| self.keys.min(cap))
    }
}

impl<'v, V> ViewProbe<'v, V> {
    pub(super) fn new(view: &'v V) -> Self {
        Self { view, counted: RefCell::default() }
    }
}

impl<V: View> Probe for ViewProbe<'_, V> {
    fn count(&self, keyspace: Keyspace, ranges: &[KeyRange], cap: u64) -> Result<u64> {
        let mut counted = self.counted.borrow_mut();
        let same = |counted: &&Counted| counted.keyspace == keyspace && *counted.ranges == *ranges;
        if let Some(keys) = counted.iter().filter(same).find_map(|counted| counted.up_to(cap)) {
            return Ok(keys);
        }
        // Some stores return the exact number without counting. The cap makes the result the same on all stores.
        let keys = count_keys(self.view, keyspace, ranges, |keys| keys < cap)?.map_or(cap, |keys| keys.min(cap));
        counted.push(Counted { keyspace, ranges: ranges.into(), cap, keys });
        Ok(keys)
    }
}
