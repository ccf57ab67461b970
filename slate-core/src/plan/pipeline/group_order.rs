//! Groups over an index: reads the end of an index for a least or greatest value, holds one group at a time if the index
//! returns its documents one after the other, and skips from the first document of a group to the first of the next.

use std::sync::Arc;

use slate_query::{path::Path, pattern::Direction, sort::Sort};

use super::{DocumentNode, GroupOrder, GroupResult};
use crate::{
    catalog::{CollectionInfo, IndexInfo},
    plan::{
        Access, AccessPath, Checks, Conjuncts, Force, IdPlan, IndexBounds, IndexScan, Plan, Query, RawPlan,
        access::ordered_by_index, candidates::candidates, keys_only::groups_by,
    },
};

/// Returns an index scan whose first value that is not null is the result of the query's only group: for `{$max: "$a"}` the scan
/// from the greatest value of an index on `a`. A filter may bind the fields of the index before `a` to one value each, and `a` to
/// a range. If equal values have different types, a scan finds the value with the least `_id` first, which is also the first
/// entry of these values.
pub(in crate::plan) fn by_end(query: &Query, collection: &CollectionInfo) -> Option<IndexScan> {
    let (path, direction) = end(query)?;
    candidates(collection, query).into_iter().find_map(|access| {
        let AccessPath::Index { index, bounds, checks } = access.path else { return None };
        let serves =
            access.exact_for.are_all(query.filter.conjuncts().len()) && groups_by(&index, &bounds, &checks, &path);
        let (_, ascending) = index.pattern.fields().last().filter(|_| serves)?;
        let direction = if *ascending == direction { Direction::Ascending } else { Direction::Descending };
        let firsts = index.pattern.fields().len();
        Some(IndexScan { index, bounds, checks, direction, limit: None, firsts })
    })
}

/// Like [`by_end`], for an index with the group's field as its leading field, if the query has no filter. Returns the
/// access path and the sort by this field.
pub(in crate::plan) fn by_end_of_leading(query: &Query, collection: &CollectionInfo) -> Option<(Access, Sort)> {
    let (path, direction) = end(query).filter(|_| query.filter.is_empty())?;
    let serves = |index: &&Arc<IndexInfo>| {
        let first = index.pattern.fields().first();
        first.is_some_and(|(field, _)| *field == path) && index.holds_values() && index.has_all_documents()
    };
    let index = collection.usable().find(serves)?;
    let (_, ascending) = index.pattern.fields().first()?;
    let walk = if *ascending == direction { Direction::Ascending } else { Direction::Descending };
    let path_of =
        AccessPath::Index { index: Arc::clone(index), bounds: IndexBounds::default(), checks: Checks::default() };
    let access = Access { direction: walk, ..Access::of_path(path_of, Conjuncts::default()) };
    Some((access, Sort::by(path, direction)))
}

/// Returns `Group::end` if the first node is a group and receives all matching documents in any order, without a hint.
fn end(query: &Query) -> Option<(Path, Direction)> {
    let is_plain = query.sort.is_none() && query.window.is_all() && query.hint.is_none() && query.force == Force::No;
    match query.pipeline.nodes.first().filter(|_| is_plain)? {
        DocumentNode::Group { group, .. } => group.end(),
        _ => None,
    }
}

/// Lets the first node hold one group at a time if the plan below returns the documents of each group one after the other. If the
/// group needs only the first document of each, the index scan skips the others.
pub(in crate::plan) fn by_key(nodes: &mut [DocumentNode], plan: &mut Plan) {
    if let Some(DocumentNode::Group { group, order: order @ GroupOrder::None, .. }) = nodes.first_mut()
        && let Some(key) = group.key_field()
        && is_ordered(plan, &Sort::by(key.clone(), Direction::Ascending))
    {
        *order = GroupOrder::ByKey;
        if group.needs_first_only()
            && let Some(scan) = whole_scan(plan)
            && let Some(place) = scan.index.pattern.fields().iter().position(|(field, _)| *field == key)
        {
            scan.firsts = place + 1;
        }
    }
}

/// Lets a group return its documents in any order if the next node does not depend on the order: it counts them, or
/// accumulates and groups only numbers of documents.
pub(super) fn unsorted(nodes: &mut [DocumentNode]) {
    let mut before: Option<&mut DocumentNode> = None;
    for node in nodes {
        if let Some(DocumentNode::Group { group, result, .. }) = before {
            let ignores_order = match node {
                DocumentNode::Count(_) => true,
                DocumentNode::Group { group: next, .. } => next.ignores_order_of(group),
                _ => false,
            };
            if ignores_order {
                *result = GroupResult::Unsorted;
            }
        }
        before = Some(node);
    }
}

/// Returns the ascending index scan whose entries are all the rows of the plan.
fn whole_scan(plan: &mut Plan) -> Option<&mut IndexScan> {
    let scan = match plan {
        Plan::Whole { input: RawPlan::Fetch { ids: IdPlan::Index(scan) } } => scan,
        Plan::Covered { scan, window, .. } if window.is_all() => scan,
        _ => return None,
    };
    (scan.direction == Direction::Ascending && scan.limit.is_none()).then_some(scan)
}

fn is_ordered(plan: &Plan, sort: &Sort) -> bool {
    // A multikey index is ordered by elements, not by arrays.
    let by_index = |IndexScan { index, bounds, direction, .. }: &IndexScan| {
        index.holds_values() && ordered_by_index(index, bounds, sort, *direction).fields > 0
    };
    let by_scan = |leaf: &RawPlan| match leaf {
        RawPlan::Fetch { ids: IdPlan::Index(scan) } => by_index(scan),
        _ => false,
    };
    match plan {
        Plan::Whole { input } if !input.sorts() => by_scan(input.leaf()),
        Plan::Covered { scan, .. } => by_index(scan),
        _ => false,
    }
}
