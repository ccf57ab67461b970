//! Plans a query: lists the candidates that a hint allows, chooses the cheapest, and adds the nodes of its pipeline.
//!
//! The choice counts the keys of a path only if the count can change it, and only until the path costs more than another one.

use std::sync::Arc;

use slate_query::{
    Code,
    filter::{Filter, Node},
    interval::IntervalSet,
    path::Path,
    pattern::Direction,
    raw::Doc,
    work,
};
use slate_store::View;

use super::{
    Access, AccessPath, Checks, Combine, CoveredField, DocumentNode, Drawing, Force, GroupOrder, IndexBounds,
    IndexScan, Output, Plan, Query, Ties, Window,
    candidate::{Candidate, FETCH_COST, Keys, PROBE_CAP, Probe, Rates, Reads, ViewProbe, reads},
    candidates::{Selectivity, candidates, merges, of_all_entries, viable_candidates},
    keys_only::drawn,
    pipeline,
    rules::{self, FiredRules},
};
use crate::{
    Error, Hint, Result,
    catalog::{CollectionInfo, IndexInfo, is_key_of_id},
    metrics::trace,
};

/// The input of the choice of a plan.
pub(crate) struct Context<'a> {
    pub(crate) collection: &'a CollectionInfo,
    pub(crate) query: &'a Query,
    pub(crate) probe: &'a dyn Probe,
    /// The access path, if it is known without a choice.
    pub(crate) access: Option<&'a Access>,
}

/// A plan, and the rules that changed it.
pub(crate) struct Planned {
    pub(crate) plan: Plan,
    pub(crate) rules: FiredRules,
}

/// Plans a query. Keys are counted in `view`.
///
/// # Errors
/// Fails on a hint that names no index, several indexes, or a wildcard index that does not serve the query; on `min`, `max` or `returnKey`
/// that the index does not allow; and on a forced candidate that does not exist.
pub(crate) fn build<V: View>(query: &Query, view: &V, collection: &CollectionInfo) -> Result<Planned> {
    let planned = build_pipeline(&Context { collection, query, probe: &ViewProbe::new(view), access: None })?;
    trace::planned(query.kind, &collection.name, || {
        let rules = query.rules(planned.rules).collect();
        Drawing::new(&planned.plan, rules, &collection.name).draw()
    });
    Ok(planned)
}

fn build_pipeline(context: &Context<'_>) -> Result<Planned> {
    let mut nodes = context.query.pipeline.nodes.clone();
    if nodes.is_empty() {
        return build_query(context, nodes);
    }
    let ends_early = |nodes: &mut Vec<DocumentNode>| {
        if let Some(DocumentNode::Group { order, .. }) = nodes.first_mut() {
            *order = GroupOrder::ByEnd;
        }
    };
    if let Some(scan) = pipeline::by_end(context.query, context.collection) {
        ends_early(&mut nodes);
        let plan = Plan::Pipeline { input: Box::new(covered_last(scan)), nodes };
        return Ok(Planned { plan, rules: FiredRules::default() });
    }
    let Some((access, sort)) = pipeline::by_end_of_leading(context.query, context.collection) else {
        return build_query(context, nodes);
    };
    ends_early(&mut nodes);
    let Query { kind, output, .. } = context.query;
    // Among equal values of different types, a scan finds the value with the least `_id` first.
    let (ties, all) = (Ties::ById, Query::of(Filter::all()));
    let query = Query { kind: *kind, sort: Some(sort), output: output.clone(), ties, ..all };
    build_query(&Context { query: &query, access: Some(&access), ..*context }, nodes)
}

/// Returns the plan that reads the last field of an index.
fn covered_last(scan: IndexScan) -> Plan {
    let last = scan.index.pattern.fields().last().map(|(path, _)| path.clone());
    let fields = vec![CoveredField::Indexed(scan.index.pattern.fields().len().saturating_sub(1))];
    Plan::Covered { scan, fields, window: Window::default(), document: drawn(last.as_slice()) }
}

/// Plans the query of a pipeline and adds the pipeline's nodes above it.
fn build_query(context: &Context<'_>, mut nodes: Vec<DocumentNode>) -> Result<Planned> {
    let candidate = select(context)?;
    // The plan copies the filter and the projection, which can be large.
    work::check()?;
    let rules = candidate.rules;
    let mut planned = Planned { plan: candidate.into_plan(context.query), rules };
    if let Output::Key = context.query.output {
        pipeline::add_return_key(&mut nodes, context.query, &planned.plan)?;
    }
    if !nodes.is_empty() {
        pipeline::by_key(&mut nodes, &mut planned.plan);
        planned.plan = Plan::Pipeline { input: Box::new(planned.plan), nodes };
    }
    Ok(planned)
}

/// Returns the cheapest candidate, or the one that the caller requests.
fn select(context: &Context<'_>) -> Result<Candidate> {
    let (collection, query) = (context.collection, context.query);
    let of = |access| Candidate::new(access, query);
    if let Some(access) = context.access {
        return Ok(of(access.clone()));
    }
    // Without rows no access path is needed.
    if rules::no_rows(query).is_some() {
        return Ok(of(Access::full_scan()));
    }
    if let (Some(limits), Some(hint)) = (&query.limits, &query.hint) {
        return match hinted_by(hint, context)? {
            Hinted::Natural(_) => {
                let message = "min and max are incompatible with $natural";
                Err(Error::invalid(Code::NO_QUERY_EXECUTION_PLANS, message).at("hint"))
            }
            Hinted::Id => limits.access(None, query).map(of),
            Hinted::Index(index) => limits.access(Some(index), query).map(of),
        };
    }
    let (usable, merging) = match (&query.hint, query.force) {
        // `Output::Key` is the key of one index; a merge has several.
        (None, Force::No) if matches!(query.output, Output::Key) => {
            (viable_candidates(collection, query), Merging::Excluded)
        }
        (None, Force::No) => (viable_candidates(collection, query), Merging::Allowed),
        (None, Force::Candidate(_)) => (candidates(collection, query).into_iter().map(of).collect(), Merging::Excluded),
        (Some(hint), _) => {
            let hinted = hinted(hint, candidates(collection, query), context)?;
            (hinted.into_iter().map(of).collect(), Merging::Excluded)
        }
    };
    match query.force {
        Force::Candidate(number) => usable
            .into_iter()
            .nth(number)
            .ok_or_else(|| Error::invalid(Code::BAD_VALUE, format!("candidate plan {number} does not exist"))),
        Force::No => cheapest(usable, merging, context),
    }
}

/// What a hint names.
enum Hinted<'c> {
    Natural(Direction),
    Id,
    Index(&'c Arc<IndexInfo>),
}

fn hinted_by<'c>(hint: &Hint, context: &Context<'c>) -> Result<Hinted<'c>> {
    Ok(match hint {
        Hint::Forward => Hinted::Natural(Direction::Ascending),
        Hint::Backward => Hinted::Natural(Direction::Descending),
        Hint::Name(name) if name == "_id_" => Hinted::Id,
        Hint::Keys(keys) if is_key_of_id(Doc::from(keys)) => Hinted::Id,
        Hint::Name(name) => {
            let index = context.collection.index(name).filter(|index| !index.hidden);
            Hinted::Index(index.ok_or_else(|| no_such(name))?)
        }
        Hint::Keys(keys) => Hinted::Index(by_keys(context, keys)?),
    })
}

fn hinted(hint: &Hint, usable: Vec<Access>, context: &Context<'_>) -> Result<Vec<Access>> {
    let index = match hinted_by(hint, context)? {
        Hinted::Natural(direction) => return Ok(vec![Access { direction, ..Access::full_scan() }]),
        Hinted::Id => None,
        Hinted::Index(index) => Some(index),
    };
    let Some(index) = index else {
        let by_id = |access: &Access| matches!(access.path, AccessPath::Records { .. } | AccessPath::Points { .. });
        let mut by_id: Vec<Access> = usable.into_iter().filter(by_id).collect();
        if by_id.len() > 1 {
            // The hint on `_id` requires a path narrower than the scan.
            by_id.retain(|access| {
                access.path.selectivity() != Selectivity::All || access.direction == Direction::Descending
            });
        }
        return Ok(if by_id.is_empty() { vec![Access::full_scan()] } else { by_id });
    };
    let of_index =
        |access: &Access| matches!(&access.path, AccessPath::Index { index: held, .. } if held.name == index.name);
    let of_index: Vec<Access> = usable.into_iter().filter(of_index).collect();
    if !of_index.is_empty() {
        return Ok(of_index);
    }
    if index.wildcard.is_some() {
        // A wildcard index serves only conditions on some field.
        let message = format!("the hinted index {} does not serve the query", index.name);
        return Err(Error::invalid(Code::NO_QUERY_EXECUTION_PLANS, message).at("hint"));
    }
    // A sparse or partial index that omits matching documents: the hint restricts the query to its entries.
    Ok(of_all_entries(index, context.query))
}

/// Returns the only visible index on these keys.
///
/// # Errors
/// Fails with `IndexNotFound` (27) if there are several, which differ in their other options, and with `BadValue` (2) if there is none.
fn by_keys<'c>(context: &Context<'c>, keys: &bson::RawDocumentBuf) -> Result<&'c Arc<IndexInfo>> {
    let keys = Doc::from(keys);
    let mut named = context.collection.usable().filter(|index| index.has_keys(keys));
    match (named.next(), named.next()) {
        (Some(index), None) => Ok(index),
        (Some(_), Some(_)) => {
            let message = format!("the hint {keys:?} names several indexes; name one of them");
            Err(Error::invalid(Code::INDEX_NOT_FOUND, message).at("hint"))
        }
        (None, _) => Err(no_such(&format!("{keys:?}"))),
    }
}

fn no_such(name: &str) -> Error {
    Error::invalid(Code::BAD_VALUE, format!("the hinted index does not exist: {name}")).at("hint")
}

/// Returns how many access paths can serve the query. Tests force each of them.
pub(crate) fn candidate_count(collection: &CollectionInfo, query: &Query) -> usize {
    candidates(collection, query).len()
}

/// An index path by single values with at most this many entries is chosen without considering others, because a probe of another path
/// searches its index from the root, which costs about as much as the other path could save.
pub(crate) const MAX_UNWEIGHED_ENTRIES: usize = 8;

/// A path by ranges that reads at most this many records is chosen without considering others, because reading the records costs as
/// much as one probe.
const MAX_UNWEIGHED_FETCHES: u64 = 2;

/// A path that is too expensive according to statistics is still counted up to this many keys, because statistics may
/// be outdated if the values of documents have changed.
const CONFIRMING_KEYS: u64 = 128;

/// The steps of counting the keys of a merge's input; see [`work`].
const STEPS_PER_PROBE: usize = 64;

/// Returns the cost up to which a path is chosen without considering others; 0 if others are always considered.
fn settled_cost(path: &AccessPath) -> u64 {
    match path {
        AccessPath::Index { .. } if path.first_bounds().is_some_and(IntervalSet::is_points) => {
            MAX_UNWEIGHED_ENTRIES as u64 * (FETCH_COST + 1)
        }
        _ if path.selectivity() == Selectivity::Narrow => MAX_UNWEIGHED_FETCHES * FETCH_COST,
        _ => 0,
    }
}

/// Whether intersections and unions of access paths are candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Merging {
    Allowed,
    Excluded,
}

/// The cost and the tie-breakers: the path that limits more fields, the more selective one, then the ascending one.
/// Remaining ties go to the first candidate, which is the first declared index.
type Rank = (u64, Unlimited, Selectivity, u8);

/// Orders paths by the number of fields that they limit, the largest first. Where a limit of rows makes the costs equal,
/// the rows that the filter rejects are only estimated, and a path with more limits rejects fewer.
type Unlimited = std::cmp::Reverse<usize>;

fn unlimited(path: &AccessPath) -> Unlimited {
    std::cmp::Reverse(path.limits().count())
}

/// An access path whose keys have not been counted.
struct Uncounted {
    at: usize,
    /// The cost with the expected number of keys.
    expected: u64,
    /// The rank at the largest relevant number of keys.
    most: Rank,
}

/// Chooses the cheapest of the usable candidates and, if `merging` allows them, of their merges.
pub(super) fn cheapest(mut usable: Vec<Candidate>, merging: Merging, context: &Context<'_>) -> Result<Candidate> {
    // No path is cheaper than one that reads a single record.
    if let Some(point) = usable.iter().position(|candidate| candidate.access.path.is_of_one_record()) {
        return Ok(usable.swap_remove(point));
    }
    let merging = if may_merge(&usable, context.query) { merging } else { Merging::Excluded };
    let candidates: Vec<Weighed<'_>> = usable.iter().map(|candidate| Weighed::new(candidate, context)).collect();
    let mut best: Option<(Rank, usize)> = None;
    let mut uncounted: Vec<Uncounted> = Vec::with_capacity(candidates.len());
    for (at, candidate) in candidates.iter().enumerate() {
        match &candidate.keys {
            Keys::Known(keys) => best = less(best, (candidate.rank(*keys), at)),
            Keys::Within(ranges) => {
                let estimate = ranges.estimate();
                // Without statistics, bounds are expected to be selective.
                let expected = estimate.unwrap_or(if ranges.is_whole() { PROBE_CAP } else { 1 });
                let most = estimate.unwrap_or_default().max(candidate.rates.cap());
                uncounted.push(Uncounted { at, expected: candidate.cost(expected), most: candidate.rank(most) });
            }
            Keys::OfInputs => {}
        }
    }
    uncounted.sort_by_key(|uncounted| (uncounted.expected, uncounted.most.1));
    let is_settled = |best: Option<(Rank, usize)>| {
        let found = best.and_then(|((cost, ..), at)| Some((cost, candidates.get(at)?)));
        found.is_some_and(|(cost, weighed)| cost <= settled_cost(&weighed.candidate.access.path))
    };
    let mut left = uncounted.len();
    for Uncounted { at, most, .. } in uncounted {
        if is_settled(best) {
            break;
        }
        left -= 1;
        // The last candidate need not be counted if it is the cheapest even with the most keys.
        if left == 0 && merging == Merging::Excluded && best.is_none_or(|best| (most, at) < best) {
            best = Some((most, at));
        } else if let Some(candidate) = candidates.get(at)
            && let Some(rank) = candidate.probe(best.map(|((cost, ..), _)| cost), context)?
        {
            best = less(best, (rank, at));
        }
    }
    let Some((rank, at)) = best else { return Ok(Candidate::new(Access::full_scan(), context.query)) };
    let mut merged: Option<(Rank, Candidate)> = None;
    if merging == Merging::Allowed && !is_settled(best) {
        for access in merges(context.collection, context.query, usable.iter().map(|candidate| &candidate.access)) {
            let candidate = Candidate::new(access, context.query);
            let least = merged.as_ref().map_or(rank, |(rank, _)| *rank);
            let rank = rank_of_merge(&candidate, least, context)?;
            if rank < least {
                merged = Some((rank, candidate));
            }
        }
    }
    Ok(merged.map_or_else(|| usable.swap_remove(at), |(_, candidate)| candidate))
}

fn less(best: Option<(Rank, usize)>, other: (Rank, usize)) -> Option<(Rank, usize)> {
    Some(best.map_or(other, |best| best.min(other)))
}

/// A candidate, its cost and its keys.
struct Weighed<'a> {
    candidate: &'a Candidate,
    rates: Rates,
    keys: Keys<'a>,
}

impl<'a> Weighed<'a> {
    fn new(candidate: &'a Candidate, context: &'a Context<'_>) -> Self {
        Self { candidate, rates: Rates::of(candidate, context), keys: Keys::of(&candidate.access.path, context) }
    }

    fn cost(&self, keys: u64) -> u64 {
        self.rates.cost(reads(&self.candidate.access.path, keys))
    }

    fn rank(&self, keys: u64) -> Rank {
        rank(&self.candidate.access, self.cost(keys))
    }

    /// Counts the keys until the path costs more than `best`, and then returns `None`. If it costs more according to statistics, counts
    /// at most [`CONFIRMING_KEYS`].
    fn probe(&self, best: Option<u64>, context: &Context<'_>) -> Result<Option<Rank>> {
        let Keys::Within(ranges) = &self.keys else { return Ok(None) };
        let cap = self.rates.cap();
        let lost_at = best.map_or(cap, |best| self.first_above(best, cap));
        let is_expected_to_lose = lost_at < cap && ranges.estimate().is_some_and(|keys| keys / 2 >= lost_at);
        let count_to = if is_expected_to_lose { lost_at.min(CONFIRMING_KEYS) } else { lost_at };
        let counted = ranges.count(context, count_to)?;
        if count_to < lost_at && counted == count_to {
            return Ok(None);
        }
        Ok(if counted < lost_at {
            Some(self.rank(counted))
        } else if lost_at < cap {
            None
        } else {
            Some(self.rank(ranges.estimate().map_or(counted, |estimate| estimate.max(counted))))
        })
    }

    /// Returns the least number of keys that cost more than `best`, at most `cap`.
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
    (cost, unlimited(&access.path), access.path.selectivity(), u8::from(access.direction == Direction::Descending))
}

/// Returns whether two narrow indexes or an `$or` may offer a merge.
fn may_merge(usable: &[Candidate], query: &Query) -> bool {
    let narrow = usable.iter().filter(|candidate| candidate.access.path.is_narrow_index()).count();
    narrow > 1 || query.filter.conjuncts().iter().any(|node| Node::branches(node).is_some())
}

/// Returns the rank of a merge if it can be below `best`; otherwise any rank that is not below.
fn rank_of_merge(candidate: &Candidate, best: Rank, context: &Context<'_>) -> Result<Rank> {
    let access = &candidate.access;
    let AccessPath::Merge { how, inputs } = &access.path else { return Ok(rank(access, u64::MAX)) };
    let rates = Rates::of(candidate, context);
    // If all keys are read, each costs at least one.
    let cap = if rates.reads_all() { best.0.saturating_add(1).min(PROBE_CAP) } else { PROBE_CAP };
    let (mut keys, mut named) = (0u64, Vec::with_capacity(inputs.len()));
    for input in inputs {
        work::take(STEPS_PER_PROBE)?;
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
            // Assumes that the other conditions are independent among the records that satisfy the conditions of all inputs.
            let most = named.iter().copied().max().unwrap_or_default();
            let all = records_of_shared(inputs, context)?.unwrap_or(most).max(most).max(1);
            named.into_iter().fold(all, |left, records| left.saturating_mul(records) / all)
        }
    };
    Ok(rank(access, rates.cost(Reads { keys, records })))
}

/// Returns the approximate number of records that satisfy the conditions that all inputs of an intersection have: all
/// records if there are none. `None` if no input has an index that begins with their fields.
fn records_of_shared(inputs: &[AccessPath], context: &Context<'_>) -> Result<Option<u64>> {
    let Some((first, others)) = inputs.split_first() else { return Ok(None) };
    let shared: Vec<&Path> = first
        .limits()
        .filter(|limit| others.iter().all(|other| other.limits().any(|held| held == *limit)))
        .map(|(path, _)| path)
        .collect();
    if shared.is_empty() {
        return records(context).map(Some);
    }
    let Some(leading) = inputs.iter().find_map(|input| leading(input, &shared)) else { return Ok(None) };
    Ok(match Keys::of(&leading, context) {
        Keys::Known(keys) => Some(keys),
        Keys::Within(ranges) => Some(ranges.count_or_estimate(context, PROBE_CAP)?),
        Keys::OfInputs => None,
    })
}

/// Returns the path by the bounds of the leading fields alone, if these are the fields `paths` and a record has one entry.
fn leading(path: &AccessPath, paths: &[&Path]) -> Option<AccessPath> {
    let AccessPath::Index { index, bounds, .. } = path else { return None };
    let fields = index.pattern.fields().get(..paths.len())?;
    if index.is_multikey() || !fields.iter().all(|(field, _)| paths.contains(&field)) {
        return None;
    }
    let bounds = IndexBounds::new(index, bounds.fields().get(..paths.len())?.to_vec());
    Some(AccessPath::Index { index: Arc::clone(index), bounds, checks: Checks::default() })
}

/// Returns the approximate number of records of the collection.
fn records(context: &Context<'_>) -> Result<u64> {
    match Keys::of(&AccessPath::Records { bounds: None }, context) {
        Keys::Known(records) => Ok(records),
        Keys::Within(ranges) => ranges.count(context, PROBE_CAP),
        Keys::OfInputs => Ok(0),
    }
}
