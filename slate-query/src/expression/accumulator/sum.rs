use super::AccumulatorState;
use crate::{
    Result,
    expression::Evaluated,
    number::{Number, Sum},
    raw::Value,
};

/// `$sum`: ignores values that are not numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Total(Sum);

impl Total {
    /// Returns the sum of `times` numbers that are all `number`.
    #[inline]
    pub(super) fn of(number: Number, times: u64) -> Self {
        let mut total = Self::default();
        total.add_number(number, times);
        total
    }

    /// Adds a number `times` times.
    #[inline]
    pub(super) fn add_number(&mut self, number: Number, times: u64) {
        self.0.add_times(number, times);
    }

    /// Returns the sum of the values of `self` and `other`.
    pub(super) fn merged(&self, other: &Self) -> Self {
        let mut sum = self.0.clone();
        sum.merge(&other.0);
        Self(sum)
    }
}

impl AccumulatorState for Total {
    #[inline]
    fn add(&mut self, value: Option<Value<'_>>, _: &[u8]) -> Result<()> {
        if let Some(number) = value.and_then(Number::of) {
            self.0.add(number);
        }
        Ok(())
    }

    #[inline]
    fn add_times(&mut self, value: Option<Value<'_>>, _: &[u8], times: u64) -> Result<()> {
        if let Some(number) = value.and_then(Number::of) {
            self.0.add_times(number, times);
        }
        Ok(())
    }

    fn finish(&mut self) -> Evaluated<'static> {
        self.0.total().into()
    }
}
