use slate_query::interval::IntervalSet;

use super::{Conjuncts, IndexBounds};
use crate::catalog::IndexInfo;

/// Where the combinations of several fields' points outgrow this, the later fields are left to the filter.
const MAX_RANGES: usize = 4_096;

/// Bounds of an index's leading fields as they grow, field by field.
#[derive(Clone, Debug)]
pub(super) struct GrowingBounds {
    fields: Vec<IntervalSet>,
    /// The conjuncts that they prove.
    proven: Conjuncts,
    ranges: usize,
    end: End,
}

/// Whether another field can be bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Open,
    /// Behind a range, or where there would be too many ranges.
    Closed,
}

impl Default for GrowingBounds {
    fn default() -> Self {
        Self { fields: Vec::new(), proven: Conjuncts::default(), ranges: 1, end: End::Open }
    }
}

impl GrowingBounds {
    pub(super) fn is_open(&self) -> bool {
        self.end == End::Open
    }

    /// Binds the next field, where that makes narrower ranges and not too many.
    pub(super) fn push(&mut self, set: IntervalSet, proven: Conjuncts) {
        let ranges = self.ranges.saturating_mul(set.len().max(1));
        if self.end == End::Closed || (!self.fields.is_empty() && ranges > MAX_RANGES) {
            self.end = End::Closed;
            return;
        }
        self.ranges = ranges;
        if !set.is_points() {
            self.end = End::Closed;
        }
        self.fields.push(set);
        self.proven = self.proven.union(proven);
    }

    /// The same, and the next field bound.
    pub(super) fn with(&self, set: IntervalSet, proven: Conjuncts) -> Self {
        let mut grown = self.clone();
        grown.push(set, proven);
        grown
    }

    pub(super) fn finish(self, index: &IndexInfo) -> (IndexBounds, Conjuncts) {
        (IndexBounds::new(index, self.fields), self.proven)
    }
}
