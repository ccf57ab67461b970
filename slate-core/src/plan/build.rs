//! Plans a query: lists its candidates, as far as a hint allows them, chooses one, and adds the nodes of its pipeline.

use std::sync::Arc;

use slate_query::{Code, pattern::Direction, raw::Doc};
use slate_store::View;

use super::{
    Access, AccessPath, CoveredField, DocumentNode, Drawing, Force, GroupOrder, Hint, IndexScan, Output, Plan, Query,
    Ties, Window,
    candidate::Candidate,
    candidates::{Selectivity, candidates, of_all_entries, viable_candidates},
    choose::{Merging, cheapest},
    cost::{Probe, ViewProbe},
    keys_only::drawn,
    pipeline,
    rules::{self, FiredRules},
};
use crate::{
    Error, Result,
    catalog::{CollectionInfo, IndexInfo, is_key_of_id},
    metrics::trace,
};

/// What a plan is chosen by.
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
/// Fails on a hint that names no index or an index without all matching documents, and on a forced candidate that does
/// not exist.
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
    // Among equal values of different types, a scan finds the value with the least `_id` first.
    let query = Query { ties: Ties::ById, ..context.query.sorted_without_pipeline(sort) };
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
    let rules = candidate.rules;
    let mut planned = Planned { plan: candidate.into_plan(context.query), rules };
    pipeline::add_return_key(&mut nodes, context.query, &planned.plan)?;
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
                Err(Error::invalid(Code(291), message).at("hint"))
            }
            Hinted::Id => limits.access(None, query).map(of),
            Hinted::Index(index) => limits.access(Some(index), query).map(of),
        };
    }
    let (usable, merging) = match (&query.hint, query.force) {
        // A document that several indexes found has no key.
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
        Hint::Natural(direction) => Hinted::Natural(*direction),
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
        return Err(Error::invalid(Code(291), message).at("hint"));
    }
    // A sparse or partial index that omits matching documents: the hint restricts the query to its entries.
    Ok(of_all_entries(index, context.query))
}

/// Returns the only visible index on these keys.
///
/// # Errors
/// `IndexNotFound` (27) if there are several, which differ in their other options.
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
