//! What an access path is expected to cost, in steps of a cursor over an index.
//!
//! Entries and records are estimated by a probe that counts no further than [`PROBE_CAP`], and beyond it by the
//! catalog's statistics. Both are the same on every store.

use slate_query::pattern::Direction;
use slate_store::Keyspace;

use super::{
    ByteRange, Combine, Context, Output,
    access::{Access, AccessPath},
    bounds::record_ranges,
    rules,
};
use crate::{Result, catalog::KeyStatistics};

/// How far entries are counted before the statistics are asked.
const PROBE_CAP: u64 = 1_000;

/// The record of an id: a descent into the records.
const FETCH: u64 = 7;
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

/// How many keys an access path reads, and how many records it names.
#[derive(Clone, Copy, Debug)]
struct Reads {
    keys: u64,
    records: u64,
}

/// Whether an access path's keys have to be counted to be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rivals {
    /// Another narrows too.
    Some,
    /// Only the scan is left to compare with.
    None,
}

/// The expected cost.
pub(super) fn cost(access: &Access, context: &Context<'_>, rivals: Rivals) -> Result<u64> {
    let query = context.query;
    let order = query.order();
    let ordered = order.map(|sort| access.path.ordered_by(sort, access.direction).fields);
    let sorted = order.zip(ordered).is_none_or(|(sort, fields)| fields == sort.fields().len());
    let residual = access.proven.len() < query.filter.conjuncts().len() && !query.filter.is_empty();
    // Rows that come as they are wanted need not all be read; of those that come in groups, whole groups.
    let group = match ordered {
        Some(fields) if !sorted && fields > 0 => group(&access.path, fields),
        _ => sorted.then_some(0),
    };
    let reach = if lists_records(&query.output) { query.window().reach() } else { None };
    let most = reach.zip(group).map(|(rows, group)| {
        let rows = if residual { rows.saturating_mul(PASSES) } else { rows };
        rows.saturating_add(group).max(1)
    });

    let reads = reads(&access.path, context, most, rivals)?;
    let (keys, records) = match most {
        Some(most) => (reads.keys.min(most), reads.records.min(most)),
        None => (reads.keys, reads.records),
    };
    if rules::reads_keys_alone(access, query) {
        // From value to value a walk leaves most entries out.
        return Ok(if matches!(query.output, Output::Distinct { .. }) { keys / 8 } else { keys });
    }
    let reading = match &access.path {
        AccessPath::Records { .. } => records.saturating_mul(SCANNED),
        AccessPath::Points { .. } | AccessPath::Index { .. } | AccessPath::Merge { .. } => {
            keys.saturating_add(records.saturating_mul(FETCH))
        }
    };
    let filtering = if residual { records.saturating_mul(FILTERED) } else { 0 };
    let passing = if residual { records / PASSES } else { records };
    let sorting = match (sorted, ordered) {
        (true, _) => 0,
        (false, Some(fields)) if fields > 0 => passing,
        (false, _) => passing.saturating_mul(SORTED),
    };
    Ok(reading.saturating_add(filtering).saturating_add(sorting))
}

/// About how many rows share the fields that a path's order begins with, where that can be told.
fn group(path: &AccessPath, fields: usize) -> Option<u64> {
    match path {
        // Fields bound to one value come before those that the order is about.
        AccessPath::Index { index, bounds, .. } => {
            let constant = (0..index.pattern.fields().len()).take_while(|&field| bounds.is_point(field)).count();
            index.statistics.as_ref().map(|statistics| statistics.group(&index.pattern, constant + fields))
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

fn reads(path: &AccessPath, context: &Context<'_>, most: Option<u64>, rivals: Rivals) -> Result<Reads> {
    let collection = context.collection;
    Ok(match path {
        AccessPath::Records { bounds: None } => {
            let records = records(context)?;
            Reads { keys: records, records }
        }
        AccessPath::Records { bounds } => {
            let ranges = record_ranges(bounds.as_ref());
            let keys = count(context, collection.records, collection.statistics.as_ref(), &ranges, most, rivals)?;
            Reads { keys, records: keys }
        }
        AccessPath::Points { ids } => {
            let keys = u64::try_from(ids.len()).unwrap_or(u64::MAX);
            Reads { keys: 0, records: keys }
        }
        AccessPath::Index { index, bounds, checks } => {
            let keys = if bounds.used() == 0 {
                match &index.statistics {
                    Some(statistics) => statistics.keys,
                    None => records(context)?,
                }
            } else {
                let ranges = bounds.ranges(index);
                count(context, index.keyspace, index.statistics.as_ref(), &ranges, most, rivals)?
            };
            let passed = checks.iter().fold(keys, |keys, _| keys.div_ceil(CHECKED));
            Reads { keys, records: passed }
        }
        AccessPath::Merge { how, inputs } => {
            let inputs: Vec<Reads> =
                inputs.iter().map(|input| reads(input, context, None, Rivals::Some)).collect::<Result<_>>()?;
            let keys = inputs.iter().fold(0u64, |sum, input| sum.saturating_add(input.keys));
            let named = inputs.iter().map(|input| input.records);
            let records = match how {
                Combine::Union => named.fold(0u64, u64::saturating_add),
                Combine::Intersection => {
                    // As if the conditions had nothing to do with one another.
                    let all = records(context)?.max(1);
                    named.fold(all, |left, records| left.saturating_mul(records) / all)
                }
            };
            Reads { keys, records }
        }
    })
}

/// How many records the collection holds, about.
fn records(context: &Context<'_>) -> Result<u64> {
    let collection = context.collection;
    match &collection.statistics {
        Some(statistics) => Ok(statistics.keys),
        None => context.probe.count(collection.records, &record_ranges(None), PROBE_CAP),
    }
}

fn count(
    context: &Context<'_>,
    keyspace: Keyspace,
    statistics: Option<&KeyStatistics>,
    ranges: &[ByteRange],
    most: Option<u64>,
    rivals: Rivals,
) -> Result<u64> {
    let cap = match (most, rivals) {
        // The first rows are all that is wanted, and nothing else could give them for less.
        (Some(most), Rivals::None) if most <= PROBE_CAP => return Ok(most),
        (Some(most), _) => most.min(PROBE_CAP),
        (None, _) => PROBE_CAP,
    };
    let counted = context.probe.count(keyspace, ranges, cap)?;
    if counted < cap {
        return Ok(counted);
    }
    Ok(statistics.map_or(counted, |statistics| statistics.estimate(ranges).max(counted)))
}

/// Among ways that cost the same: what narrows before what does not, and forward before backward.
pub(super) fn rank(access: &Access) -> (super::candidates::Narrowing, u8) {
    let backward = u8::from(access.direction == Direction::Descending);
    (access.path.narrowing(), backward)
}
