//! Counts keys instead of records if no filter remains. Where a record may have several entries, in a multikey index or in a
//! merge, each record is counted once by its key.

use slate_query::pattern::Direction;

use super::Outcome;
use crate::{
    Result,
    plan::{Context, CountedKeys, IdPlan, IndexScan, Plan, RawPlan},
};

pub(super) fn apply(plan: &mut Plan, _: &Context<'_>) -> Result<Outcome> {
    let Plan::Count { input } = plan else { return Ok(Outcome::Unchanged) };
    let Some((leaf, window)) = input.sliced_leaf_mut() else { return Ok(Outcome::Unchanged) };
    let keys = match leaf {
        RawPlan::Scan { bounds, .. } => CountedKeys::Records { bounds: bounds.take() },
        RawPlan::Fetch { ids: IdPlan::Index(scan) } if scan.finds_once() => {
            CountedKeys::Entries(IndexScan { direction: Direction::Ascending, limit: None, ..scan.take() })
        }
        RawPlan::Fetch { ids } if ids.is_of_entries() => CountedKeys::Ids(ids.take()),
        _ => return Ok(Outcome::Unchanged),
    };
    *plan = Plan::CountKeys { keys, window };
    Ok(Outcome::Finished)
}
