//! Chooses the cheapest access path.
//!
//! The keys of a path are counted only where the count may change the choice, and no further than that: a path has lost once
//! it has as many keys as make it dearer than another.

use slate_query::{filter::Node, interval::IntervalSet, pattern::Direction};

use super::{
    Combine, Context, Query,
    access::{Access, AccessPath},
    candidates::{Selectivity, merges},
    cost::{FETCH_COST, Keys, PROBE_CAP, Rates, Reads, reads},
};
use crate::Result;

/// An index path by single values that reads at most this many entries and their records is chosen without weighing
/// others: probing another path costs a descent into its keyspace, which is about what it could save.
pub(crate) const MAX_UNWEIGHED_ENTRIES: usize = 8;

/// The same for a path by ranges: the records that cost as much as one probe.
const MAX_UNWEIGHED_FETCHES: u64 = 2;

/// The cost up to which a path is chosen without weighing others.
fn settled_cost(path: &AccessPath) -> u64 {
    match path {
        AccessPath::Index { bounds, .. } if bounds.fields().first().is_some_and(IntervalSet::is_points) => {
            MAX_UNWEIGHED_ENTRIES as u64 * (FETCH_COST + 1)
        }
        _ if path.selectivity() == Selectivity::Narrow => MAX_UNWEIGHED_FETCHES * FETCH_COST,
        _ => 0,
    }
}

/// Whether several paths may be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Merging {
    Allowed,
    Excluded,
}

/// The cost, and what decides among equals: the more selective path, then the ascending one. Then the order of the
/// candidates decides, which is that in which the indexes were declared.
type Rank = (u64, Selectivity, u8);

/// An access path whose keys have not been counted.
struct Uncounted {
    at: usize,
    /// The cost with the expected number of keys.
    expected: u64,
    /// The rank with the most keys that matter.
    most: Rank,
}

/// Chooses among the usable access paths.
pub(super) fn cheapest(mut usable: Vec<Access>, merging: Merging, context: &Context<'_>) -> Result<Access> {
    // One record: nothing is cheaper.
    if let Some(point) = usable.iter().position(|access| access.path.is_of_one_record()) {
        return Ok(usable.swap_remove(point));
    }
    let merging = if may_merge(&usable, context.query) { merging } else { Merging::Excluded };
    let candidates: Vec<Candidate<'_>> = usable.iter().map(|access| Candidate::new(access, context)).collect();
    let mut best: Option<(Rank, usize)> = None;
    let mut uncounted: Vec<Uncounted> = Vec::with_capacity(candidates.len());
    for (at, candidate) in candidates.iter().enumerate() {
        match &candidate.keys {
            Keys::Known(keys) => best = less(best, (candidate.rank(*keys), at)),
            Keys::Within(ranges) => {
                let estimate = ranges.estimate();
                // Without statistics, bounds are expected to leave little.
                let expected = estimate.unwrap_or(if ranges.is_whole() { PROBE_CAP } else { 1 });
                let most = estimate.unwrap_or_default().max(candidate.rates.cap());
                uncounted.push(Uncounted { at, expected: candidate.cost(expected), most: candidate.rank(most) });
            }
            Keys::OfInputs => {}
        }
    }
    uncounted.sort_by_key(|uncounted| uncounted.expected);
    let is_settled = |best: Option<(Rank, usize)>| {
        let found = best.and_then(|((cost, ..), at)| Some((cost, candidates.get(at)?)));
        found.is_some_and(|(cost, candidate)| cost <= settled_cost(&candidate.access.path))
    };
    let mut left = uncounted.len();
    for Uncounted { at, most, .. } in uncounted {
        if is_settled(best) {
            break;
        }
        left -= 1;
        // The last one need not be counted where it is the cheapest even with the most keys.
        if left == 0 && merging == Merging::Excluded && best.is_none_or(|best| (most, at) < best) {
            best = Some((most, at));
        } else if let Some(candidate) = candidates.get(at)
            && let Some(rank) = candidate.probe(best.map(|((cost, ..), _)| cost), context)?
        {
            best = less(best, (rank, at));
        }
    }
    let Some((rank, at)) = best else { return Ok(Access::full_scan()) };
    let mut merged: Option<(Rank, Access)> = None;
    if merging == Merging::Allowed && !is_settled(best) {
        for access in merges(context.collection, context.query, usable.iter()) {
            let least = merged.as_ref().map_or(rank, |(rank, _)| *rank);
            let rank = rank_of_merge(&access, least, context)?;
            if rank < least {
                merged = Some((rank, access));
            }
        }
    }
    Ok(merged.map_or_else(|| usable.swap_remove(at), |(_, access)| access))
}

fn less(best: Option<(Rank, usize)>, other: (Rank, usize)) -> Option<(Rank, usize)> {
    Some(best.map_or(other, |best| best.min(other)))
}

/// An access path, what it costs, and its keys.
struct Candidate<'a> {
    access: &'a Access,
    rates: Rates,
    keys: Keys<'a>,
}

impl<'a> Candidate<'a> {
    fn new(access: &'a Access, context: &'a Context<'_>) -> Self {
        Self { access, rates: Rates::of(access, context), keys: Keys::of(&access.path, context) }
    }

    fn cost(&self, keys: u64) -> u64 {
        self.rates.cost(reads(&self.access.path, keys))
    }

    fn rank(&self, keys: u64) -> Rank {
        rank(self.access, self.cost(keys))
    }

    /// Counts the keys as far as the path may still be cheaper than `best`; `None` where it is not.
    fn probe(&self, best: Option<u64>, context: &Context<'_>) -> Result<Option<Rank>> {
        let Keys::Within(ranges) = &self.keys else { return Ok(None) };
        let cap = self.rates.cap();
        let lost_at = best.map_or(cap, |best| self.first_above(best, cap));
        let counted = ranges.count(context, lost_at)?;
        Ok(if counted < lost_at {
            Some(self.rank(counted))
        } else if lost_at < cap {
            None
        } else {
            Some(self.rank(ranges.estimate().map_or(counted, |estimate| estimate.max(counted))))
        })
    }

    /// The least number of keys that cost more than `best`, or `cap` where that is less.
    fn first_above(&self, best: u64, cap: u64) -> u64 {
        let (mut low, mut high) = (1, cap);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.cost(middle) > best {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }
}

fn rank(access: &Access, cost: u64) -> Rank {
    (cost, access.path.selectivity(), u8::from(access.direction == Direction::Descending))
}

/// Whether any paths can be merged.
fn may_merge(usable: &[Access], query: &Query) -> bool {
    let narrow = usable.iter().filter(|access| access.path.is_narrow_index()).count();
    narrow > 1 || query.filter.conjuncts().iter().any(|node| Node::branches(node).is_some())
}

/// The rank of a merge where it may be below `best`; otherwise any rank that is not.
fn rank_of_merge(access: &Access, best: Rank, context: &Context<'_>) -> Result<Rank> {
    let AccessPath::Merge { how, inputs } = &access.path else { return Ok(rank(access, u64::MAX)) };
    let rates = Rates::of(access, context);
    // Each key costs at least one, where all are read.
    let cap = if rates.reads_all() { best.0.saturating_add(1).min(PROBE_CAP) } else { PROBE_CAP };
    let (mut keys, mut named) = (0u64, Vec::with_capacity(inputs.len()));
    for input in inputs {
        let of_input = match Keys::of(input, context) {
            Keys::Known(keys) => keys,
            Keys::Within(ranges) => ranges.count_or_estimate(context, cap)?,
            Keys::OfInputs => u64::MAX,
        };
        let Reads { keys: read, records } = reads(input, of_input);
        keys = keys.saturating_add(read);
        named.push(records);
    }
    let records = match how {
        Combine::Union => named.into_iter().fold(0u64, u64::saturating_add),
        Combine::Intersection => {
            // As if the conditions were independent.
            let all = records(context)?.max(1);
            named.into_iter().fold(all, |left, records| left.saturating_mul(records) / all)
        }
    };
    Ok(rank(access, rates.cost(Reads { keys, records })))
}

/// About how many records the collection holds.
fn records(context: &Context<'_>) -> Result<u64> {
    match Keys::of(&AccessPath::Records { bounds: None }, context) {
        Keys::Known(records) => Ok(records),
        Keys::Within(ranges) => ranges.count(context, PROBE_CAP),
        Keys::OfInputs => Ok(0),
    }
}
