//! Counts that are in the keys alone.

use slate_query::pattern::Direction;
use slate_store::{Keyspace, View};

use super::{
    Resources,
    entries::EntryWalk,
    probe::{self, RangeWalk},
};
use crate::{
    Result,
    catalog::CollectionInfo,
    plan::{ByteRange, CountedKeys, record_ranges},
};

/// How many keys there are.
pub(super) fn count_keys<V: View>(
    view: &V,
    collection: &CollectionInfo,
    keys: CountedKeys,
    resources: &Resources,
) -> Result<u64> {
    let mut meter = resources.meter(match &keys {
        CountedKeys::Records { .. } => "COLLSCAN",
        CountedKeys::Entries(_) => "IXSCAN",
    });
    let start = meter.start();
    let counted = match keys {
        CountedKeys::Records { bounds } => {
            count_ranges(view, collection.records, record_ranges(bounds.as_ref()), resources)?
        }
        CountedKeys::Entries(scan) if scan.checks.is_empty() => {
            count_ranges(view, scan.index.keyspace, scan.bounds.into_ranges(), resources)?
        }
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
    // They were counted, and none was shown.
    (meter.counted.keys, meter.counted.rows) = (counted, counted);
    meter.stop(start);
    Ok(counted)
}

/// How many keys lie within the ranges. A store that can count without a walk, or knows the size of a keyspace, is asked; what
/// has to be walked is walked here, where the walk can be interrupted.
fn count_ranges<V: View>(view: &V, keyspace: Keyspace, ranges: Vec<ByteRange>, resources: &Resources) -> Result<u64> {
    let mut interrupt = resources.interrupt.clone();
    interrupt.check()?;
    if matches!(ranges.as_slice(), [all] if all.is_all()) {
        return probe::count(view, keyspace, &ranges, u64::MAX);
    }
    let mut counted = 0;
    let mut uncounted = Vec::new();
    for range in ranges {
        match view.count(keyspace, probe::bounds(&range))? {
            Some(keys) => counted += keys,
            None => uncounted.push(range),
        }
    }
    let mut walk = RangeWalk::new(view.clone(), keyspace, uncounted, Direction::Ascending);
    while walk.advance()? {
        interrupt.tick()?;
        counted += 1;
    }
    Ok(counted)
}
