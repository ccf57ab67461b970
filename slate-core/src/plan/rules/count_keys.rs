//! A count of what bounds prove is a count of keys: no record is read. Where an index has met an array, a record may
//! have several entries, and is fetched as before.

use crate::{
    Result,
    plan::{AccessPath, Context, CountedKeys, IdPlan, IndexScan, Plan, RawPlan},
};
use slate_query::pattern::Direction;

pub(super) fn apply(plan: Plan, _: &Context<'_>) -> Result<Plan> {
    let Plan::Count { input } = plan else { return Ok(plan) };
    let input = match input.into_sliced_leaf() {
        Ok((RawPlan::Scan { bounds, .. }, window)) => {
            return Ok(Plan::CountKeys { keys: CountedKeys::Records { bounds }, window });
        }
        Ok((RawPlan::Fetch { ids: IdPlan::Index(scan) }, window)) if !scan.index.is_multikey() => {
            let scan = IndexScan { direction: Direction::Ascending, limit: None, ..scan };
            return Ok(Plan::CountKeys { keys: CountedKeys::Entries(scan), window });
        }
        Ok((leaf, window)) => leaf.sliced(window),
        Err(input) => input,
    };
    Ok(Plan::Count { input })
}

/// Whether each record of an access path has one key to be counted.
pub(super) fn serves(path: &AccessPath) -> bool {
    match path {
        AccessPath::Records { .. } => true,
        AccessPath::Index { index, .. } => !index.is_multikey(),
        // An `_id` that is asked for may not be there.
        AccessPath::Points { .. } | AccessPath::Merge { .. } => false,
    }
}
