//! A count of what bounds prove is a count of keys: no record is read. Where an index has met an array, a record may
//! have several entries, and is fetched as before.

use crate::{
    Result,
    plan::{AccessPath, Context, CountedKeys, IdPlan, IndexScan, Plan, RawPlan},
};
use slate_query::pattern::Direction;

pub(super) fn apply(plan: Plan, _: &Context<'_>) -> Result<Plan> {
    let Plan::Count { input } = plan else { return Ok(plan) };
    let counted = input.sliced_leaf().and_then(|(leaf, window)| {
        let path = match leaf {
            RawPlan::Scan { bounds, .. } => AccessPath::Records { bounds: bounds.clone() },
            RawPlan::Fetch { ids: IdPlan::Index(IndexScan { index, bounds, checks, .. }) } => {
                AccessPath::Index { index: index.clone(), bounds: bounds.clone(), checks: checks.clone() }
            }
            RawPlan::Fetch { .. } | RawPlan::Filter { .. } | RawPlan::Sort { .. } | RawPlan::Slice { .. } => {
                return None;
            }
        };
        Some((counted(&path)?, window))
    });
    Ok(match counted {
        Some((keys, window)) => Plan::CountKeys { keys, window },
        None => Plan::Count { input },
    })
}

/// The keys to be counted for the records of an access path, where each record has one.
pub(super) fn counted(path: &AccessPath) -> Option<CountedKeys> {
    match path {
        AccessPath::Records { bounds } => Some(CountedKeys::Records { bounds: bounds.clone() }),
        AccessPath::Index { index, bounds, checks } if !index.is_multikey() => Some(CountedKeys::Entries(IndexScan {
            index: index.clone(),
            bounds: bounds.clone(),
            checks: checks.clone(),
            direction: Direction::Ascending,
            limit: None,
        })),
        // An `_id` that is asked for may not be there.
        AccessPath::Index { .. } | AccessPath::Points { .. } | AccessPath::Merge { .. } => None,
    }
}
