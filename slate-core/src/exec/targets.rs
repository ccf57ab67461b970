use slate_store::View;

use super::RawRows;
use crate::{
    Result,
    catalog::CollectionInfo,
    interrupt::Interrupt,
    plan::{Access, RawPlan},
};

/// How many records a write is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The first that matches: by the sort where there is one, and by `_id` among equals.
    One,
    /// Every one that matches.
    All,
}

/// The keys of the records that a write is for, fixed before the first of them changes: what the write itself moves
/// within an index is not met again.
pub(crate) fn targets<V: View>(
    plan: RawPlan,
    view: &V,
    collection: &CollectionInfo,
    target: Target,
    interrupt: &Interrupt,
) -> Result<Vec<Vec<u8>>> {
    let ordered = match &plan {
        // A sort puts equal rows in the order of `_id`, and one that was removed was removed with that in mind.
        RawPlan::Sort { .. } | RawPlan::Slice { .. } => true,
        RawPlan::Filter { .. } | RawPlan::Scan { .. } | RawPlan::Fetch { .. } => {
            Access::of(plan.leaf()).is_some_and(|(path, direction)| path.is_in_id_order(direction))
        }
    };
    let mut rows = RawRows::open(plan, view, collection, interrupt)?;
    let mut keys: Vec<Vec<u8>> = Vec::new();
    while rows.advance()? {
        let Some(record) = rows.current() else { break };
        match (target, ordered, keys.first_mut()) {
            (Target::All, _, _) | (Target::One, _, None) => keys.push(record.key.to_vec()),
            (Target::One, true, Some(_)) => {}
            (Target::One, false, Some(least)) if record.key < least.as_slice() => *least = record.key.to_vec(),
            (Target::One, false, Some(_)) => {}
        }
        if target == Target::One && ordered {
            break;
        }
    }
    Ok(keys)
}
