use slate_query::raw::Doc;
use slate_store::{PointReader, View};

use super::{Resources, express, open::open_records};
use crate::{
    Error, Result,
    catalog::CollectionInfo,
    metrics::{Examined, PlanSummary},
    plan::{self, Plan, Query, RawPlan, is_leaf_in_id_order},
};

/// Which matching records a write changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The first matching record, in the order of the sort and then of `_id`.
    One,
    /// All matching records.
    All,
}

/// Calls `visitor` with the record key and the document of each target of a write. `view` must not change meanwhile, so
/// that a record that the write moves within an index is not found twice.
pub(crate) fn visit_targets<V: View>(
    query: &Query,
    view: &V,
    collection: &CollectionInfo,
    target: Target,
    resources: &Resources,
    mut visitor: impl FnMut(&[u8], Doc<'_>) -> Result<()>,
) -> Result<()> {
    resources.interrupt.check()?;
    if let Some(key) = express::record_key(query) {
        collection.uses.ids.add();
        let mut reader = view.point_reader()?;
        reader.load(&[(collection.records, &key)])?;
        let found = reader.loaded(0);
        resources.summarize(|| PlanSummary::LOOKUP, || None);
        resources.tally.add(Examined::lookup(u64::from(found.is_some())));
        return found.map_or(Ok(()), |stored| visitor(&key, Doc::stored(stored)));
    }
    let ended = resources.interrupt.ending(view);
    let view = ended.as_ref().unwrap_or(view);
    let planned = plan::build(query, view, collection)?;
    let Plan::Whole { input: plan } = resources.executes(query, collection, planned) else {
        return Err(Error::corrupt("the query of a write has a projection"));
    };
    let ordered = match &plan {
        // Rows that are equal under the sort come in the order of `_id`, both from a sort and from an index that
        // replaces it.
        RawPlan::Eof { .. } | RawPlan::Sort { .. } | RawPlan::Slice { .. } => true,
        RawPlan::Filter { .. } | RawPlan::Scan { .. } | RawPlan::Fetch { .. } => is_leaf_in_id_order(plan.leaf()),
    };
    let resources = resources.of_raw_plan(&plan);
    let mut rows = open_records(plan, view, collection, &resources)?;
    let mut least: Option<(Vec<u8>, Vec<u8>)> = None;
    while rows.advance()? {
        let Some(record) = rows.record() else { break };
        match target {
            Target::All => visitor(record.key, record.document())?,
            Target::One if ordered => return visitor(record.key, record.document()),
            Target::One => {
                if least.as_ref().is_none_or(|(least, _)| record.key < least.as_slice()) {
                    least = Some((record.key.to_vec(), record.stored.to_vec()));
                }
            }
        }
    }
    least.map_or(Ok(()), |(key, stored)| visitor(&key, Doc::stored(&stored)))
}
