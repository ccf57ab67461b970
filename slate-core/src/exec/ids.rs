use std::sync::Arc;

use ahash::AHashSet;
use slate_query::{interval::IntervalSet, key, pattern::Direction};
use slate_store::View;

use super::probe::RangeWalk;
use crate::{
    Error, Result,
    catalog::IndexInfo,
    entry::Entry,
    interrupt::Interrupt,
    plan::{ByteRange, Combine, IdPlan, IndexScan, component_ranges},
};

/// The ID tier: keys of records, handed out in batches so that a store can load many in one round.
pub(super) enum IdRows<V: View> {
    /// Keys known beforehand, and whether each must have a record.
    Keys(std::vec::IntoIter<Vec<u8>>, Promise),
    Index(Box<IndexIds<V>>),
}

/// Whether an id that has no record is damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Promise {
    /// It came from an index's entry: it is.
    Record,
    /// It was asked for.
    Nothing,
}

/// Keys of records, end to end.
#[derive(Debug, Default)]
pub(super) struct IdBatch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl IdBatch {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn get(&self, at: usize) -> Option<&[u8]> {
        let start = match at.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.bytes.get(start..*self.ends.get(at)?)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).filter_map(|at| self.get(at))
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }
}

impl<V: View> IdRows<V> {
    pub(super) fn open(view: &V, plan: IdPlan, interrupt: &Interrupt) -> Result<Self> {
        Ok(match plan {
            IdPlan::Points(ids) => Self::Keys(points(&ids).into_iter(), Promise::Nothing),
            IdPlan::Index(scan) => Self::Index(Box::new(IndexIds::open(view, scan, interrupt))),
            IdPlan::Merge { how, inputs } => {
                // A point among the inputs of a union may name no record.
                let points = inputs.iter().any(|input| matches!(input, IdPlan::Points(_)));
                let promise = if points { Promise::Nothing } else { Promise::Record };
                Self::Keys(merge(view, how, inputs, interrupt)?.into_iter(), promise)
            }
        })
    }

    /// What it means that an id has no record.
    pub(super) fn promise(&self) -> Promise {
        match self {
            Self::Keys(_, promise) => *promise,
            Self::Index(_) => Promise::Record,
        }
    }

    /// Replaces `batch` by the next ids, at most `most` of them; empty after the last.
    pub(super) fn next_batch(&mut self, most: usize, batch: &mut IdBatch) -> Result<()> {
        batch.clear();
        while batch.len() < most {
            match self {
                Self::Keys(keys, _) => match keys.next() {
                    Some(key) => batch.push(&key),
                    None => break,
                },
                Self::Index(ids) => match ids.next()? {
                    Some(key) => batch.push(key),
                    None => break,
                },
            }
        }
        Ok(())
    }
}

fn points(ids: &IntervalSet) -> Vec<Vec<u8>> {
    ids.iter().filter_map(|interval| interval.as_point().map(<[u8]>::to_vec)).collect()
}

/// The keys that any input, or every input, yields: in order, each once.
fn merge<V: View>(view: &V, how: Combine, inputs: Vec<IdPlan>, interrupt: &Interrupt) -> Result<Vec<Vec<u8>>> {
    let mut merged: Option<Vec<Vec<u8>>> = None;
    for input in inputs {
        let mut keys = Vec::new();
        let mut rows = IdRows::open(view, input, interrupt)?;
        let mut batch = IdBatch::default();
        loop {
            rows.next_batch(MERGED, &mut batch)?;
            if batch.len() == 0 {
                break;
            }
            keys.extend(batch.iter().map(<[u8]>::to_vec));
        }
        keys.sort_unstable();
        keys.dedup();
        merged = Some(match (merged, how) {
            (None, _) => keys,
            (Some(mut others), Combine::Union) => {
                others.append(&mut keys);
                // Two sorted runs: a merge sort finds them and is linear.
                others.sort();
                others.dedup();
                others
            }
            (Some(mut others), Combine::Intersection) => {
                others.retain(|key| keys.binary_search(key).is_ok());
                others
            }
        });
    }
    Ok(merged.unwrap_or_default())
}

/// So many ids are taken at once from an input of a merge.
const MERGED: usize = 1_024;

/// The entries of an index within bounds, those that pass the checks.
pub(super) struct EntryWalk<V: View> {
    walk: RangeWalk<V>,
    index: Arc<IndexInfo>,
    /// Ascending by field: where the field's encoded value must lie.
    checks: Vec<(usize, Vec<ByteRange>)>,
    interrupt: Interrupt,
}

impl<V: View> EntryWalk<V> {
    pub(super) fn open(view: &V, scan: &IndexScan, interrupt: &Interrupt) -> Self {
        let IndexScan { index, bounds, checks, direction, limit: _ } = scan;
        let fields = index.pattern.fields();
        let check = |(field, set): &(usize, IntervalSet)| {
            let direction = fields.get(*field).map_or(Direction::Ascending, |(_, direction)| *direction);
            (*field, component_ranges(set, direction))
        };
        let mut checks: Vec<_> = checks.iter().map(check).collect();
        checks.sort_by_key(|(field, _)| *field);
        let walk = RangeWalk::new(view.clone(), index.keyspace, bounds.ranges(index), *direction);
        Self { walk, index: Arc::clone(index), checks, interrupt: interrupt.clone() }
    }

    /// Moves to the next entry; `false` after the last.
    pub(super) fn advance(&mut self) -> Result<bool> {
        loop {
            self.interrupt.tick()?;
            if !self.walk.advance()? {
                return Ok(false);
            }
            if self.checks.is_empty() || self.passes()? {
                return Ok(true);
            }
        }
    }

    /// The entry last moved to.
    #[inline]
    pub(super) fn current(&self) -> Result<Option<Entry<'_>>> {
        self.walk.current().map(|(key, value)| Entry::parse(&self.index, key, value)).transpose()
    }

    fn passes(&self) -> Result<bool> {
        let Some(entry) = self.current()? else { return Ok(false) };
        let mut rest = entry.values;
        let mut checks = self.checks.iter();
        let mut next = checks.next();
        for (at, (_, direction)) in self.index.pattern.fields().iter().enumerate() {
            let Some((field, ranges)) = next else { break };
            let damaged = || Error::corrupt(format!("an entry of index {} is damaged", self.index.name));
            let length = key::skip(rest, *direction).ok_or_else(damaged)?;
            let (value, after) = rest.split_at_checked(length).ok_or_else(damaged)?;
            if *field == at {
                if !ranges.iter().any(|range| range.contains(value)) {
                    return Ok(false);
                }
                next = checks.next();
            }
            rest = after;
        }
        Ok(true)
    }
}

/// The records that an index's entries name, each once.
pub(super) struct IndexIds<V: View> {
    walk: EntryWalk<V>,
    /// Where a record may have several entries: those seen, by the key itself.
    seen: Option<AHashSet<Box<[u8]>>>,
    left: u64,
}

impl<V: View> IndexIds<V> {
    fn open(view: &V, scan: IndexScan, interrupt: &Interrupt) -> Self {
        let seen = scan.index.is_multikey().then(AHashSet::new);
        Self { walk: EntryWalk::open(view, &scan, interrupt), seen, left: scan.limit.unwrap_or(u64::MAX) }
    }

    fn next(&mut self) -> Result<Option<&[u8]>> {
        if self.left == 0 {
            return Ok(None);
        }
        loop {
            if !self.walk.advance()? {
                self.left = 0;
                return Ok(None);
            }
            let Some(seen) = &mut self.seen else { break };
            let Some(entry) = self.walk.current()? else { return Ok(None) };
            if !seen.contains(entry.record_key) {
                seen.insert(entry.record_key.into());
                break;
            }
        }
        self.left -= 1;
        Ok(self.walk.current()?.map(|entry| entry.record_key))
    }
}
