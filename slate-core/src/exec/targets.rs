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

/// The keys of the records that a write is for.
pub(crate) enum Targets {
    One(Option<Vec<u8>>),
    All(SpoolRows),
}

impl Targets {
    /// How many there are in all.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::One(key) => u64::from(key.is_some()),
            Self::All(keys) => keys.len(),
        }
    }

    /// The next keys, at most `most` of them; none after the last.
    pub(crate) fn take(&mut self, most: usize) -> Result<Vec<Vec<u8>>> {
        match self {
            Self::One(key) => Ok(key.take().into_iter().collect()),
            Self::All(keys) => keys.take(most),
        }
    }
}

/// The keys of the records that a write is for, fixed before the first of them changes: what the write itself moves
/// within an index is not met again.
pub(crate) fn targets<V: View>(
    plan: RawPlan,
    view: &V,
    collection: &CollectionInfo,
    target: Target,
    resources: &Resources,
) -> Result<Targets> {
    let ordered = match &plan {
        // A sort puts equal rows in the order of `_id`, and one that was removed was removed with that in mind.
        RawPlan::Sort { .. } | RawPlan::Slice { .. } => true,
        RawPlan::Filter { .. } | RawPlan::Scan { .. } | RawPlan::Fetch { .. } => is_leaf_in_id_order(plan.leaf()),
    };
    let resources = resources.shared_by(1 + raw_holders(&plan));
    let mut rows = RawRows::open(plan, view, collection, &resources)?;
    match target {
        Target::One => {
            let mut least: Option<Vec<u8>> = None;
            while rows.advance()? {
                let Some(record) = rows.current() else { break };
                if least.as_ref().is_none_or(|least| record.key < least.as_slice()) {
                    least = Some(record.key.to_vec());
                }
                if ordered {
                    break;
                }
            }
            Ok(Targets::One(least))
        }
        Target::All => {
            let mut keys = Spool::new(resources.memory.clone());
            while rows.advance()? {
                let Some(record) = rows.current() else { break };
                keys.push(record.key)?;
            }
            Ok(Targets::All(keys.into_rows()?))
        }
    }
}
