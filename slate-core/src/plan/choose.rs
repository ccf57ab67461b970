//! Which of several access paths is taken: the cheapest.
//!
//! Keys are counted only where that may change the choice, and only as far as it may: a way has lost once it has as many
//! keys as make it dearer than another.

use slate_query::{filter::Node, interval::IntervalSet, pattern::Direction};

use super::{
    Combine, Context, Query,
    access::{Access, AccessPath},
    candidates::{Narrowing, merges},
    cost::{FETCH, Keys, PROBE_CAP, Rates, Reads, reads},
};
use crate::Result;

/// An index path by single values that reads at most this many entries and their records is chosen without weighing
/// others: probing another path costs a descent into its keyspace, which is about what it could save.
pub(crate) const MAX_UNWEIGHED_ENTRIES: usize = 8;

/// The same for a path by ranges: the records that cost as much as one probe.
const MAX_UNWEIGHED_FETCHES: u64 = 2;

/// The cost up to which a path is chosen without weighing others, in cursor steps.
fn settled_cost(path: &AccessPath) -> u64 {
    match path {
        AccessPath::Index { bounds, .. } if bounds.fields().first().is_some_and(IntervalSet::is_points) => {
            MAX_UNWEIGHED_ENTRIES as u64 * (FETCH + 1)
        }
        _ if path.narrowing() == Narrowing::Narrow => MAX_UNWEIGHED_FETCHES * FETCH,
        _ => 0,
    }
}

/// Whether several paths may be put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Merging {
    Allowed,
    /// The caller has said which one to take.
    Excluded,
}

/// An access path, and what it costs as far as that is known.
struct Contender {
    access: Access,
    rates: Rates,
    worth: Worth,
}

#[derive(Clone, Copy, Debug)]
enum Worth {
    Known(Rank),
    /// Its keys have not been counted.
    Open {
        /// With as many keys as there can be.
        most: Rank,
        /// With as many as there may be, as far as can be told without counting.
        about: u64,
    },
    /// It is dearer than another.
    Lost,
}

/// The cost, and what decides among equals: what narrows before what does not, and forward before backward. Of ways that
/// are equal in all of that, the first in the order of the candidates is taken, which is the order in which the indexes
/// were declared.
type Rank = (u64, Narrowing, u8);

/// The cheapest of the usable access paths.
pub(super) fn cheapest(usable: Vec<Access>, merging: Merging, context: &Context<'_>) -> Result<Access> {
    let mut usable = usable;
    // One key of the records: nothing is cheaper, and nothing need be counted.
    if let Some(point) = usable.iter().position(|access| access.path.is_of_one_record()) {
        return Ok(usable.swap_remove(point));
    }
    let merging = if may_merge(&usable, context.query) { merging } else { Merging::Excluded };
    let mut contenders: Vec<Contender> = usable.into_iter().map(|access| Contender::new(access, context)).collect();
    let (best, rank) = loop {
        match next_step(&contenders, merging) {
            Step::Take(at) => return Ok(contenders.swap_remove(at).access),
            Step::Probe(at, best) => {
                if let Some(contender) = contenders.get_mut(at) {
                    contender.probe(best, context)?;
                }
            }
            Step::Merge(at, rank) => break (at, rank),
            Step::Nothing => return Ok(Access::scan()),
        }
    };
    let mut merged: Option<(Rank, Access)> = None;
    for access in merges(context.collection, context.query, contenders.iter().map(|contender| &contender.access)) {
        let best = merged.as_ref().map_or(rank, |(rank, _)| *rank);
        let rank = rank_of_merge(&access, best, context)?;
        if rank < best {
            merged = Some((rank, access));
        }
    }
    Ok(merged.map_or_else(|| contenders.swap_remove(best).access, |(_, access)| access))
}

enum Step {
    /// The choice is made.
    Take(usize),
    /// Count the keys of this one, which may be cheaper than so much.
    Probe(usize, Option<u64>),
    /// It is made among those that are not merged.
    Merge(usize, Rank),
    /// There is none to choose from.
    Nothing,
}

fn next_step(contenders: &[Contender], merging: Merging) -> Step {
    let mut best: Option<(Rank, usize)> = None;
    // Each with its place; of several that are still open, the one that looks cheapest.
    let mut open: Option<(u64, usize, Rank)> = None;
    let mut several = false;
    for (at, contender) in contenders.iter().enumerate() {
        match contender.worth {
            Worth::Known(rank) if best.is_none_or(|(least, _)| rank < least) => best = Some((rank, at)),
            Worth::Open { most, about } => {
                several |= open.is_some();
                if open.is_none_or(|(least, ..)| about < least) {
                    open = Some((about, at, most));
                }
            }
            Worth::Known(_) | Worth::Lost => {}
        }
    }
    match (best, open) {
        (None, None) => Step::Nothing,
        (Some((rank @ (cost, ..), at)), open) => match open {
            _ if contenders.get(at).is_some_and(|best| cost <= settled_cost(&best.access.path)) => Step::Take(at),
            Some((_, open, most)) if !several && merging == Merging::Excluded && (most, open) < (rank, at) => {
                Step::Take(open)
            }
            Some((_, open, _)) => Step::Probe(open, Some(cost)),
            None if merging == Merging::Allowed => Step::Merge(at, rank),
            None => Step::Take(at),
        },
        (None, Some((_, open, _))) if several || merging == Merging::Allowed => Step::Probe(open, None),
        (None, Some((_, open, _))) => Step::Take(open),
    }
}

impl Contender {
    fn new(access: Access, context: &Context<'_>) -> Self {
        let mut contender = Self { rates: Rates::of(&access, context), access, worth: Worth::Lost };
        contender.worth = match Keys::of(&contender.access.path, context) {
            Keys::Known(keys) => Worth::Known(contender.rank(keys)),
            Keys::Within(stretch) => {
                let estimate = stretch.estimate();
                let most = estimate.unwrap_or_default().max(contender.rates.cap());
                // Where nothing is known, bounds are thought to leave little.
                let about = estimate.unwrap_or(if stretch.is_whole() { PROBE_CAP } else { 1 });
                Worth::Open { most: contender.rank(most), about: contender.cost(about) }
            }
            Keys::OfInputs => Worth::Lost,
        };
        contender
    }

    fn cost(&self, keys: u64) -> u64 {
        self.rates.cost(reads(&self.access.path, keys))
    }

    fn rank(&self, keys: u64) -> Rank {
        rank(&self.access, self.cost(keys))
    }

    /// Counts its keys, as far as it may still be cheaper than `best`.
    fn probe(&mut self, best: Option<u64>, context: &Context<'_>) -> Result<()> {
        let Keys::Within(stretch) = Keys::of(&self.access.path, context) else { return Ok(()) };
        let cap = self.rates.cap();
        let lost_at = best.map_or(cap, |best| self.first_above(best, cap));
        let counted = stretch.count(context, lost_at)?;
        self.worth = if counted < lost_at {
            Worth::Known(self.rank(counted))
        } else if lost_at < cap {
            Worth::Lost
        } else {
            Worth::Known(self.rank(stretch.estimate().map_or(counted, |estimate| estimate.max(counted))))
        };
        Ok(())
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
    (cost, access.path.narrowing(), u8::from(access.direction == Direction::Descending))
}

/// Whether there is anything that could be put together.
fn may_merge(usable: &[Access], query: &Query) -> bool {
    let narrow = usable.iter().filter(|access| access.path.is_narrow_index()).count();
    narrow > 1 || query.filter.conjuncts().iter().any(|node| Node::branches(node).is_some())
}

/// The rank of a merge, where it may be below `best`; otherwise one that is not.
fn rank_of_merge(access: &Access, best: Rank, context: &Context<'_>) -> Result<Rank> {
    let AccessPath::Merge { how, inputs } = &access.path else { return Ok(rank(access, u64::MAX)) };
    let rates = Rates::of(access, context);
    // Each key costs one at least, where all are read.
    let cap = if rates.reads_all() { best.0.saturating_add(1).min(PROBE_CAP) } else { PROBE_CAP };
    let (mut keys, mut named) = (0u64, Vec::with_capacity(inputs.len()));
    for input in inputs {
        let of_input = match Keys::of(input, context) {
            Keys::Known(keys) => keys,
            Keys::Within(stretch) => match stretch.count(context, cap)? {
                counted if counted < cap => counted,
                counted => stretch.estimate().map_or(counted, |estimate| estimate.max(counted)),
            },
            Keys::OfInputs => u64::MAX,
        };
        let Reads { keys: read, records } = reads(input, of_input);
        keys = keys.saturating_add(read);
        named.push(records);
    }
    let records = match how {
        Combine::Union => named.into_iter().fold(0u64, u64::saturating_add),
        Combine::Intersection => {
            // As if the conditions had nothing to do with one another.
            let all = records(context)?.max(1);
            named.into_iter().fold(all, |left, records| left.saturating_mul(records) / all)
        }
    };
    Ok(rank(access, rates.cost(Reads { keys, records })))
}

/// How many records the collection holds, about.
fn records(context: &Context<'_>) -> Result<u64> {
    match Keys::of(&AccessPath::Records { bounds: None }, context) {
        Keys::Known(records) => Ok(records),
        Keys::Within(stretch) => stretch.count(context, PROBE_CAP),
        Keys::OfInputs => Ok(0),
    }
}
