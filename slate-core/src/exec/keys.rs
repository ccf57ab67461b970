use slate_store::{Keyspace, View};

use super::{
    Resources,
    ids::{EntryWalk, IdRows, Repeats},
    packed::Packed,
};
use crate::{
    Error, Result,
    catalog::CollectionInfo,
    key_range::{self, KeyRange},
    plan::{CountedKeys, IdPlan, record_ranges},
};

/// Counts keys instead of reading records.
pub(super) fn count_keys<V: View>(
    view: &V,
    collection: &CollectionInfo,
    keys: CountedKeys,
    resources: &Resources,
) -> Result<u64> {
    let keys = match keys {
        CountedKeys::Ids(ids) => return count_ids(view, ids, resources),
        keys => keys,
    };
    let mut meter = resources.first_meter(&keys);
    let start = meter.start();
    let counted = match keys {
        CountedKeys::Records { bounds } => {
            count_ranges(view, collection.records, record_ranges(bounds.as_ref()), resources)?
        }
        CountedKeys::Entries(scan) if scan.checks.is_empty() => {
            count_ranges(view, scan.index.keyspace, scan.bounds.into_ranges(), resources)?
        }
        CountedKeys::Ids(_) => 0,
        CountedKeys::Entries(scan) => {
            let mut walk = EntryWalk::open(view, scan, &resources.interrupt, meter.same());
            let mut counted = 0;
            while walk.advance()? {
                counted += 1;
            }
            meter.counted.rows = counted;
            meter.stop(start);
            return Ok(counted);
        }
    };
    (meter.counted.keys, meter.counted.rows) = (counted, counted);
    meter.stop(start);
    Ok(counted)
}

/// Counts the records that ids refer to, each once.
fn count_ids<V: View>(view: &V, ids: IdPlan, resources: &Resources) -> Result<u64> {
    /// Ids read at a time, so that the work per batch is negligible.
    const BATCH: usize = 1_024;
    let mut rows = IdRows::open(view, ids, resources, Repeats::Never)?;
    let (mut batch, mut counted) = (Packed::default(), 0);
    loop {
        rows.next_batch(BATCH, &mut batch)?;
        if batch.len() == 0 {
            return Ok(counted);
        }
        counted += u64::try_from(batch.len()).unwrap_or(u64::MAX);
    }
}

/// Counts the keys within ranges.
fn count_ranges<V: View>(view: &V, keyspace: Keyspace, ranges: Vec<KeyRange>, resources: &Resources) -> Result<u64> {
    let mut interrupt = resources.interrupt.clone();
    let mut ended = Ok(());
    let counted = key_range::count_keys(view, keyspace, &ranges, |_| {
        ended = interrupt.tick();
        ended.is_ok()
    })?;
    ended?;
    counted.ok_or_else(|| Error::corrupt("the store ended a count early"))
}
