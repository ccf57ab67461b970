use slate_query::interval::IntervalSet;

use super::{Conjuncts, IndexBounds};
use crate::catalog::IndexInfo;

/// Maximum number of ranges of bounds on several fields, one for each combination of their points. Later fields stay
/// in the filter. Several thousand seeks cost about as much as reading the entries in between.
const MAX_RANGES: usize = 4_096;

/// Builds bounds on the leading fields of an index, field by field.
#[derive(Clone, Debug)]
pub(super) struct GrowingBounds {
    fields: Vec<IntervalSet>,
    exact_for: Conjuncts,
    ranges: usize,
    end: BoundsEnd,
}

/// Whether another field can be bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BoundsEnd {
    Open,
    /// A range was bound, or another field would need too many ranges.
    Closed,
}

impl Default for GrowingBounds {
    fn default() -> Self {
        Self { fields: Vec::new(), exact_for: Conjuncts::default(), ranges: 1, end: BoundsEnd::Open }
    }
}

impl GrowingBounds {
    pub(super) fn is_open(&self) -> bool {
        self.end == BoundsEnd::Open
    }

    /// Binds the next field, unless that needs too many ranges.
    pub(super) fn push(&mut self, set: IntervalSet, exact_for: Conjuncts) {
        let ranges = self.ranges.saturating_mul(set.len().max(1));
        if self.end == BoundsEnd::Closed || (!self.fields.is_empty() && ranges > MAX_RANGES) {
            self.end = BoundsEnd::Closed;
            return;
        }
        self.ranges = ranges;
        if !set.is_points() {
            self.end = BoundsEnd::Closed;
        }
        self.fields.push(set);
        self.exact_for = self.exact_for.union(exact_for);
    }

    pub(super) fn with(&self, set: IntervalSet, exact_for: Conjuncts) -> Self {
        let mut grown = self.clone();
        grown.push(set, exact_for);
        grown
    }

    pub(super) fn finish(self, index: &IndexInfo) -> (IndexBounds, Conjuncts) {
        (IndexBounds::new(index, self.fields), self.exact_for)
    }
}
