use std::cmp::Ordering;

use super::AccumulatorState;
use crate::{
    Result,
    collation::{Collation, compare},
    expression::Evaluated,
    raw::{OwnedValue, Value},
};

/// `$min` and `$max`, in BSON's order. Null, undefined and missing values are ignored; the result is null if there are no others.
#[derive(Clone, Debug)]
pub(super) struct Extreme {
    best: Option<OwnedValue>,
    collation: Option<Collation>,
    /// A value replaces the current result if comparing the value with the result gives this order: less for `$min`,
    /// greater for `$max`.
    better: Ordering,
}

impl Extreme {
    pub(super) fn min() -> Self {
        Self { best: None, collation: None, better: Ordering::Less }
    }

    /// Returns the accumulator with the better value; `self` if they are equal.
    pub(super) fn merged(&self, other: &Self) -> Self {
        let best = match (&self.best, &other.best) {
            (Some(a), Some(b)) if self.is_better(b.as_value(), a.as_value()) => other,
            (None, Some(_)) => other,
            _ => self,
        };
        best.clone()
    }

    fn is_better(&self, value: Value<'_>, best: Value<'_>) -> bool {
        compare(self.collation.as_ref(), value, best) == self.better
    }

    /// Stores `value` if it beats the result; skips missing, null and undefined. Adds the growth of the heap memory, in bytes, to `heap`.
    #[inline]
    pub(super) fn offer(&mut self, value: Option<Value<'_>>, heap: &mut usize) {
        let Some(value) = value.filter(|value| !value.is_nullish()) else { return };
        if let Some(best) = &self.best
            && !self.is_better(value, best.as_value())
        {
            return;
        }
        let before = self.bytes();
        self.best = Some(value.to_owned());
        *heap = (*heap + self.bytes()).saturating_sub(before);
    }

    pub(super) fn has_value(&self) -> bool {
        self.best.is_some()
    }

    pub(super) fn max() -> Self {
        Self { best: None, collation: None, better: Ordering::Greater }
    }
}

impl AccumulatorState for Extreme {
    #[inline]
    fn add(&mut self, value: Option<Value<'_>>, _: &[u8]) -> Result<()> {
        self.offer(value, &mut 0);
        Ok(())
    }

    fn add_times(&mut self, value: Option<Value<'_>>, key: &[u8], _: u64) -> Result<()> {
        self.add(value, key)
    }

    fn collate(&mut self, collation: &Collation) {
        self.collation = Some(collation.clone());
    }

    fn finish(&mut self) -> Evaluated<'static> {
        self.best.clone().map_or(Evaluated::NULL, Evaluated::Owned)
    }

    fn bytes(&self) -> usize {
        self.best.as_ref().map_or(0, OwnedValue::heap_bytes)
    }
}
