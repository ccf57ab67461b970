use slate_store::View;

use super::{RawRows, Resources, resources::raw_holders};
use crate::{
    Result,
    catalog::CollectionInfo,
    plan::{RawPlan, is_leaf_in_id_order},
    spill::{Spool, SpoolRows},
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
    resources: &Resources,
) -> Result<SpoolRows> {
    let ordered = match &plan {
        // A sort puts equal rows in the order of `_id`, and one that was removed was removed with that in mind.
        RawPlan::Sort { .. } | RawPlan::Slice { .. } => true,
        RawPlan::Filter { .. } | RawPlan::Scan { .. } | RawPlan::Fetch { .. } => is_leaf_in_id_order(plan.leaf()),
    };
    let resources = resources.shared_by(1 + raw_holders(&plan));
    let mut rows = RawRows::open(plan, view, collection, &resources)?;
    let mut keys = Spool::new(resources.memory.clone());
    let mut least: Option<Vec<u8>> = None;
    while rows.advance()? {
        let Some(record) = rows.current() else { break };
        match (target, &mut least) {
            (Target::All, _) => keys.push(record.key)?,
            (Target::One, Some(least)) if record.key >= least.as_slice() => {}
            (Target::One, least) => *least = Some(record.key.to_vec()),
        }
        if target == Target::One && ordered {
            break;
        }
    }
    if let Some(least) = least {
        keys.push(&least)?;
    }
    keys.into_rows()
}
