use super::AccumulatorState;
use crate::{
    Result,
    expression::Evaluated,
    number::{Number, Sum},
    raw::Value,
};

/// `$avg`: ignores values that are not numbers; the result is null if there is no number.
#[derive(Clone, Debug, Default)]
pub(super) struct Average {
    sum: Sum,
    count: i64,
}

impl Average {
    /// Returns the average of the values of `self` and `other`.
    pub(super) fn merged(&self, other: &Self) -> Self {
        let mut sum = self.sum.clone();
        sum.merge(&other.sum);
        Self { sum, count: self.count + other.count }
    }
}

impl AccumulatorState for Average {
    #[inline]
    fn add(&mut self, value: Option<Value<'_>>, _: &[u8]) -> Result<()> {
        if let Some(number) = value.and_then(Number::of) {
            self.sum.add(number);
            self.count += 1;
        }
        Ok(())
    }

    fn add_times(&mut self, value: Option<Value<'_>>, _: &[u8], times: u64) -> Result<()> {
        if let Some(number) = value.and_then(Number::of) {
            self.sum.add_times(number, times);
            self.count += i64::try_from(times).unwrap_or(i64::MAX);
        }
        Ok(())
    }

    fn finish(&mut self) -> Evaluated<'static> {
        if self.count == 0 { Evaluated::NULL } else { self.sum.total().over(Number::Int64(self.count)).into() }
    }
}
