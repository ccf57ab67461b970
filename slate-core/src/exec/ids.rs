use ahash::AHashSet;
use slate_store::View;

use super::probe::RangeWalk;
use crate::{
    Result,
    catalog::{CollectionInfo, IndexInfo},
    entry::Entry,
    interrupt::Interrupt,
    plan::{AccessPath, IdPlan, IndexScan},
};
use std::sync::Arc;

/// The ID tier: keys of records, handed out in batches so that a store can load many in one round.
pub(super) enum IdRows<V: View> {
    /// Keys known beforehand.
    Points(std::vec::IntoIter<Vec<u8>>),
    Index(Box<IndexIds<V>>),
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
    pub(super) fn open(view: &V, collection: &CollectionInfo, plan: IdPlan, interrupt: Interrupt) -> Self {
        match plan {
            IdPlan::Points(ids) => {
                let keys: Vec<_> = ids.iter().filter_map(|interval| interval.as_point().map(<[u8]>::to_vec)).collect();
                Self::Points(keys.into_iter())
            }
            IdPlan::Index(scan) => Self::Index(Box::new(IndexIds::open(view, collection, scan, interrupt))),
        }
    }

    /// Whether an id that has no record is damage: an index's entry always has one.
    pub(super) fn promises_records(&self) -> bool {
        matches!(self, Self::Index(_))
    }

    /// Replaces `batch` by the next ids, at most `most` of them; empty after the last.
    pub(super) fn next_batch(&mut self, most: usize, batch: &mut IdBatch) -> Result<()> {
        batch.clear();
        match self {
            Self::Points(keys) => keys.take(most).for_each(|key| batch.push(&key)),
            Self::Index(ids) => {
                while batch.len() < most {
                    match ids.next()? {
                        Some(key) => batch.push(key),
                        None => break,
                    }
                }
            }
        }
        Ok(())
    }
}

/// The records that an index's entries name, each once.
pub(super) struct IndexIds<V: View> {
    walk: RangeWalk<V>,
    index: Arc<IndexInfo>,
    /// Where a record may have several entries: those seen, by the key itself.
    seen: Option<AHashSet<Box<[u8]>>>,
    left: u64,
    interrupt: Interrupt,
}

impl<V: View> IndexIds<V> {
    fn open(view: &V, collection: &CollectionInfo, scan: IndexScan, interrupt: Interrupt) -> Self {
        let IndexScan { index, bounds, direction, limit } = scan;
        let path = AccessPath::Index { index: Arc::clone(&index), bounds };
        let (keyspace, ranges) = path.ranges(collection);
        let seen = index.is_multikey().then(AHashSet::new);
        let walk = RangeWalk::new(view.clone(), keyspace, ranges, direction);
        Self { walk, index, seen, left: limit.unwrap_or(u64::MAX), interrupt }
    }

    fn next(&mut self) -> Result<Option<&[u8]>> {
        if self.left == 0 {
            return Ok(None);
        }
        loop {
            self.interrupt.tick()?;
            if !self.walk.advance()? {
                self.left = 0;
                return Ok(None);
            }
            let Some((key, value)) = self.walk.current() else { return Ok(None) };
            let record_key = Entry::parse(&self.index, key, value)?.record_key;
            if let Some(seen) = &mut self.seen {
                if seen.contains(record_key) {
                    continue;
                }
                seen.insert(record_key.into());
            }
            break;
        }
        self.left -= 1;
        // Taken again: a borrow returned out of the loop would outlast the next move.
        let Some((key, value)) = self.walk.current() else { return Ok(None) };
        Ok(Some(Entry::parse(&self.index, key, value)?.record_key))
    }
}

