use std::cell::RefCell;

use slate_store::{Keyspace, View};

use crate::{
    Result,
    catalog::CollectionInfo,
    key_range::KeyRange,
    plan::{self, Drawing, Planned, Probe, Query},
    trace,
};

/// Plans a query. The planner probes `view`.
pub(crate) fn plan<V: View>(query: &Query, view: &V, collection: &CollectionInfo) -> Result<Planned> {
    let probe = ViewProbe { view, counted: RefCell::default() };
    let planned = plan::build(&plan::Context { collection, query, probe: &probe, access: None })?;
    trace::planned(query.kind, &collection.name, &planned.plan, |plan| {
        let rules = query.rules(planned.rules).collect();
        Drawing::new(plan, rules, &collection.name).draw()
    });
    Ok(planned)
}

/// Counts keys in a view for the planner. Counts are cached, because many access paths of a query have the same bounds.
struct ViewProbe<'v, V> {
    view: &'v V,
    counted: RefCell<Vec<Counted>>,
}

/// The number of keys within ranges, counted up to a cap.
struct Counted {
    keyspace: Keyspace,
    ranges: Box<[KeyRange]>,
    cap: u64,
    keys: u64,
}

impl Counted {
    /// Returns the count up to another cap, if this count determines it.
    fn up_to(&self, cap: u64) -> Option<u64> {
        (self.keys < self.cap || cap <= self.cap).then(|| self.keys.min(cap))
    }
}

impl<V: View> Probe for ViewProbe<'_, V> {
    fn count(&self, keyspace: Keyspace, ranges: &[KeyRange], cap: u64) -> Result<u64> {
        let mut counted = self.counted.borrow_mut();
        let same = |counted: &&Counted| counted.keyspace == keyspace && *counted.ranges == *ranges;
        if let Some(keys) = counted.iter().filter(same).find_map(|counted| counted.up_to(cap)) {
            return Ok(keys);
        }
        let keys = count(self.view, keyspace, ranges, cap)?;
        counted.push(Counted { keyspace, ranges: ranges.into(), cap, keys });
        Ok(keys)
    }
}

/// Counts the keys within ranges, up to a cap.
fn count(view: &impl View, keyspace: Keyspace, ranges: &[KeyRange], cap: u64) -> Result<u64> {
    let mut counted = 0;
    for range in ranges {
        let left = cap - counted;
        // Some stores return the exact number without counting. The cap makes the result the same on all stores.
        counted += view.count(keyspace, range.bounds(), |counted| counted < left)?.map_or(left, |keys| keys.min(left));
        if counted >= cap {
            return Ok(cap);
        }
    }
    Ok(counted)
}
