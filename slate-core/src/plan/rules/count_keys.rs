//! A count of what bounds prove is a count of keys: no record is read. Where an index has met an array, a record may
//! have several entries, and is fetched as before.

use crate::{
    Result,
    plan::{AccessPath, Context, CountedKeys, IdPlan, IndexScan, Plan, RawPlan},
};
use slate_query::pattern::Direction;

pub(super) fn apply(plan: &mut Plan, _: &Context<'_>) -> Result<()> {
    let Plan::Count { input } = plan else { return Ok(()) };
    let Some((leaf, window)) = input.sliced_leaf_mut() else { return Ok(()) };
    let keys = match leaf {
        RawPlan::Scan { bounds, .. } => CountedKeys::Records { bounds: bounds.take() },
        RawPlan::Fetch { ids: IdPlan::Index(scan) } if !scan.index.is_multikey() => {
            CountedKeys::Entries(IndexScan { direction: Direction::Ascending, limit: None, ..scan.take() })
        }
        RawPlan::Fetch { .. } | RawPlan::Filter { .. } | RawPlan::Sort { .. } | RawPlan::Slice { .. } => return Ok(()),
    };
    *plan = Plan::CountKeys { keys, window };
    Ok(())
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
