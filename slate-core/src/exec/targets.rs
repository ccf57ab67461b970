use slate_query::raw::SmallBytes;
use slate_store::View;

use super::{RawRows, Resources, express, resources::raw_holders};
use crate::{
    Error, Result,
    catalog::CollectionInfo,
    plan::{Plan, Query, RawPlan, is_leaf_in_id_order},
    spill::{Spool, SpoolRows},
};

/// Which matching records a write changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The first, in the order of the sort and then of `_id`.
    One,
    /// All.
    All,
}

/// The keys of the target records, read in rounds. A key may have no record.
pub(crate) enum TargetKeys {
    /// At most one key.
    Single(Option<SmallBytes>),
    Spooled(Box<SpoolRows>),
}

impl TargetKeys {
    /// Returns whether there may be more than `most` keys.
    pub(crate) fn may_exceed(&self, most: usize) -> bool {
        match self {
            Self::Single(_) => most == 0,
            Self::Spooled(keys) => keys.len() > most as u64,
        }
    }

    /// Returns at most `most` further keys; none after the last.
    pub(crate) fn take(&mut self, most: usize) -> Result<Vec<SmallBytes>> {
        match self {
            Self::Single(key) => Ok(key.take().into_iter().collect()),
            Self::Spooled(keys) => keys.take(most),
        }
    }
}

/// Finds the keys of the targets before the first of them changes, so that a record that the write moves within an
/// index is not found twice.
pub(crate) fn targets<V: View>(
    query: &Query,
    view: &V,
    collection: &CollectionInfo,
    target: Target,
    resources: &Resources,
) -> Result<TargetKeys> {
    if let Some(key) = express::record_key(query) {
        // The write reads the record and finds out whether it exists.
        return Ok(TargetKeys::Single(Some(key)));
    }
    let Plan::Whole { input: plan } = super::plan(query, view, collection)?.plan else {
        return Err(Error::corrupt("the query of a write has a projection"));
    };
    let ordered = match &plan {
        // Rows that are equal under the sort come in the order of `_id`, both from a sort and from an index that
        // replaces it.
        RawPlan::Eof { .. } | RawPlan::Sort { .. } | RawPlan::Slice { .. } => true,
        RawPlan::Filter { .. } | RawPlan::Scan { .. } | RawPlan::Fetch { .. } => is_leaf_in_id_order(plan.leaf()),
    };
    let spools = usize::from(target == Target::All);
    let resources = resources.shared_by(spools + raw_holders(&plan));
    let mut rows = RawRows::open(plan, view, collection, &resources)?;
    match target {
        Target::One => {
            let mut least: Option<SmallBytes> = None;
            while rows.advance()? {
                let Some(record) = rows.current() else { break };
                if least.as_ref().is_none_or(|least| record.key < least.as_slice()) {
                    least = Some(record.key.into());
                }
                if ordered {
                    break;
                }
            }
            Ok(TargetKeys::Single(least))
        }
        Target::All => {
            let mut keys = Spool::new(resources.memory.clone());
            while rows.advance()? {
                let Some(record) = rows.current() else { break };
                keys.push(record.key)?;
            }
            Ok(TargetKeys::Spooled(Box::new(keys.into_rows()?)))
        }
    }
}
