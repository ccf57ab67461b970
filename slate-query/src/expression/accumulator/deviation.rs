use super::AccumulatorState;
use crate::{Result, expression::Evaluated, number::Number, raw::Value};

/// `$stdDevPop` and `$stdDevSamp`, by Welford's method. Ignores values that are not numbers.
#[derive(Debug)]
pub(super) struct Deviation {
    count: f64,
    mean: f64,
    /// The sum of the squared distances from the mean.
    squares: f64,
    /// The sum of squares is divided by the number of values minus this: 0 for a population, 1 for a sample.
    correction: f64,
}

impl Deviation {
    pub(super) fn population() -> Self {
        Self { count: 0.0, mean: 0.0, squares: 0.0, correction: 0.0 }
    }

    pub(super) fn sample() -> Self {
        Self { correction: 1.0, ..Self::population() }
    }
}

impl AccumulatorState for Deviation {
    fn add(&mut self, value: Option<Value<'_>>, _: &[u8]) -> Result<()> {
        if let Some(number) = value.and_then(Number::of) {
            let number = number.to_f64();
            self.count += 1.0;
            let distance = number - self.mean;
            self.mean += distance / self.count;
            self.squares += distance * (number - self.mean);
        }
        Ok(())
    }

    fn finish(&mut self) -> Evaluated<'static> {
        let count = self.count - self.correction;
        if count <= 0.0 { Evaluated::NULL } else { Evaluated::double((self.squares / count).sqrt()) }
    }
}
