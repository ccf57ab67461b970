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

struct Candidate {
    access: Access,
    rates: Rates,
    cost: Cost,
}

/// What is known of a candidate's cost.
#[derive(Clone, Copy, Debug)]
enum Cost {
    Known(Rank),
    /// Its keys have not been counted.
    Uncounted {
        /// With the most keys that matter.
        most: Rank,
        /// With the expected number of keys.
        expected: u64,
    },
    /// It is dearer than another.
    Lost,
}

/// The cost, and what decides among equals: the more selective path, then the ascending one, then the order of the
/// candidates, which is that in which the indexes were declared.
type Rank = (u64, Selectivity, u8);

/// Chooses among the usable access paths.
pub(super) fn cheapest(mut usable: Vec<Access>, merging: Merging, context: &Context<'_>) -> Result<Access> {
    // One record: nothing is cheaper.
    if let Some(point) = usable.iter().position(|access| access.path.is_of_one_record()) {
        return Ok(usable.swap_remove(point));
    }
    let merging = if may_merge(&usable, context.query) { merging } else { Merging::Excluded };
    let mut candidates: Vec<Candidate> = usable.into_iter().map(|access| Candidate::new(access, context)).collect();
    let (best, rank) = loop {
        match next_step(&candidates, merging) {
            Step::Take(at) => return Ok(candidates.swap_remove(at).access),
            Step::Probe(at, best) => {
                if let Some(candidate) = candidates.get_mut(at) {
                    candidate.probe(best, context)?;
                }
            }
            Step::Merge(at, rank) => break (at, rank),
            Step::Nothing => return Ok(Access::full_scan()),
        }
    };
    let mut merged: Option<(Rank, Access)> = None;
    for access in merges(context.collection, context.query, candidates.iter().map(|candidate| &candidate.access)) {
        let best = merged.as_ref().map_or(rank, |(rank, _)| *rank);
        let rank = rank_of_merge(&access, best, context)?;
        if rank < best {
            merged = Some((rank, access));
        }
    }
    Ok(merged.map_or_else(|| candidates.swap_remove(best).access, |(_, access)| access))
}

enum Step {
    /// Take this candidate.
    Take(usize),
    /// Count the keys of this one, which may be cheaper than the best known cost.
    Probe(usize, Option<u64>),
    /// Compare this one, the best, with merges.
    Merge(usize, Rank),
    /// There are no candidates.
    Nothing,
}

fn next_step(candidates: &[Candidate], merging: Merging) -> Step {
    let mut best: Option<(Rank, usize)> = None;
    // The uncounted candidate with the least expected cost.
    let mut uncounted: Option<(u64, usize, Rank)> = None;
    let mut has_several = false;
    for (at, candidate) in candidates.iter().enumerate() {
        match candidate.cost {
            Cost::Known(rank) if best.is_none_or(|(least, _)| rank < least) => best = Some((rank, at)),
            Cost::Uncounted { most, expected } => {
                has_several |= uncounted.is_some();
                if uncounted.is_none_or(|(least, ..)| expected < least) {
                    uncounted = Some((expected, at, most));
                }
            }
            Cost::Known(_) | Cost::Lost => {}
        }
    }
    match (best, uncounted) {
        (None, None) => Step::Nothing,
        (Some((rank @ (cost, ..), at)), uncounted) => match uncounted {
            _ if candidates.get(at).is_some_and(|best| cost <= settled_cost(&best.access.path)) => Step::Take(at),
            Some((_, next, most)) if !has_several && merging == Merging::Excluded && (most, next) < (rank, at) => {
                Step::Take(next)
            }
            Some((_, next, _)) => Step::Probe(next, Some(cost)),
            None if merging == Merging::Allowed => Step::Merge(at, rank),
            None => Step::Take(at),
        },
        (None, Some((_, next, _))) if has_several || merging == Merging::Allowed => Step::Probe(next, None),
        (None, Some((_, next, _))) => Step::Take(next),
    }
}

impl Candidate {
    fn new(access: Access, context: &Context<'_>) -> Self {
        let mut candidate = Self { rates: Rates::of(&access, context), access, cost: Cost::Lost };
        candidate.cost = match Keys::of(&candidate.access.path, context) {
            Keys::Known(keys) => Cost::Known(candidate.rank(keys)),
            Keys::Within(ranges) => {
                let estimate = ranges.estimate();
                let most = estimate.unwrap_or_default().max(candidate.rates.cap());
                // Without statistics, bounds are expected to leave little.
                let expected = estimate.unwrap_or(if ranges.is_whole() { PROBE_CAP } else { 1 });
                Cost::Uncounted { most: candidate.rank(most), expected: candidate.cost_of(expected) }
            }
            Keys::OfInputs => Cost::Lost,
        };
        candidate
    }

    fn cost_of(&self, keys: u64) -> u64 {
        self.rates.cost(reads(&self.access.path, keys))
    }

    fn rank(&self, keys: u64) -> Rank {
        rank(&self.access, self.cost_of(keys))
    }

    /// Counts its keys, as far as it may still be cheaper than `best`.
    fn probe(&mut self, best: Option<u64>, context: &Context<'_>) -> Result<()> {
        let Keys::Within(ranges) = Keys::of(&self.access.path, context) else { return Ok(()) };
        let cap = self.rates.cap();
        let lost_at = best.map_or(cap, |best| self.first_above(best, cap));
        let counted = ranges.count(context, lost_at)?;
        self.cost = if counted < lost_at {
            Cost::Known(self.rank(counted))
        } else if lost_at < cap {
            Cost::Lost
        } else {
            Cost::Known(self.rank(ranges.estimate().map_or(counted, |estimate| estimate.max(counted))))
        };
        Ok(())
    }

    /// The least number of keys that cost more than `best`, or `cap` where that is less.
    fn first_above(&self, best: u64, cap: u64) -> u64 {
        let (mut low, mut high) = (1, cap);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.cost_of(middle) > best {
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
