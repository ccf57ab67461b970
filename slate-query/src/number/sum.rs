use super::{Decimal, Number};
use crate::raw::Kind;

/// A sum of numbers in the widest of their types. The rounding errors of doubles are added up separately (Neumaier's
/// summation), so that the order of the numbers hardly matters. Integers are summed exactly.
#[derive(Clone, Debug)]
pub struct Sum {
    widest: Width,
    whole: i128,
    double: f64,
    /// The accumulated rounding error of `double`.
    error: f64,
    /// Boxed because it is rare: a group has a sum per accumulator.
    decimal: Option<Box<Decimal>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Width {
    Int32,
    Int64,
    Double,
    Decimal,
}

impl Default for Sum {
    fn default() -> Self {
        Self { widest: Width::Int32, whole: 0, double: 0.0, error: 0.0, decimal: None }
    }
}

impl Sum {
    /// Adds a number.
    pub fn add(&mut self, number: Number) {
        let width = match number.kind() {
            Kind::Int32 => Width::Int32,
            Kind::Int64 => Width::Int64,
            Kind::Double => Width::Double,
            _ => Width::Decimal,
        };
        self.widest = self.widest.max(width);
        match number {
            Number::Int32(int) => self.whole += i128::from(int),
            Number::Int64(int) => self.whole += i128::from(int),
            Number::Double(double) => self.add_double(double),
            Number::Decimal(decimal) => self.add_decimal(decimal),
        }
    }

    /// Adds a number as often as `times`, with the result that [`add`](Self::add) would have.
    pub fn add_times(&mut self, number: Number, times: u64) {
        match number {
            // The first addition determines the type; integers are exact, so the others are one multiplication.
            Number::Int32(_) | Number::Int64(_) if times > 0 => {
                self.add(number);
                let int = number.to_i64().unwrap_or_default();
                self.whole += i128::from(int) * i128::from(times - 1);
            }
            number => (0..times).for_each(|_| self.add(number)),
        }
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: &Self) {
        self.widest = self.widest.max(other.widest);
        self.whole += other.whole;
        self.add_double(other.double);
        self.add_double(other.error);
        if let Some(decimal) = &other.decimal {
            self.add_decimal(**decimal);
        }
    }

    fn add_decimal(&mut self, decimal: Decimal) {
        let sum = self.decimal.as_deref().map_or(decimal, |sum| sum.add(decimal));
        self.decimal = Some(Box::new(sum));
    }

    fn add_double(&mut self, double: f64) {
        let total = self.double + double;
        if total.is_finite() {
            self.error += if self.double.abs() >= double.abs() {
                (self.double - total) + double
            } else {
                (double - total) + self.double
            };
        }
        self.double = total;
    }

    /// The sum in the widest type; int32 overflows into int64, and int64 into a double.
    pub fn total(&self) -> Number {
        match self.widest {
            Width::Int32 | Width::Int64 => match (i32::try_from(self.whole), i64::try_from(self.whole)) {
                (Ok(int), _) if self.widest == Width::Int32 => Number::Int32(int),
                (_, Ok(int)) => Number::Int64(int),
                (_, Err(_)) => Number::Double(whole_to_f64(self.whole)),
            },
            Width::Double => Number::Double(self.doubles()),
            Width::Decimal => {
                let whole = i64::try_from(self.whole)
                    .map_or_else(|_| Decimal::exactly(whole_to_f64(self.whole)), Decimal::from);
                let doubles =
                    if self.double == 0.0 { Decimal::ZERO } else { Decimal::exactly(self.double + self.error) };
                let decimals = self.decimal.as_deref().map_or(Decimal::ZERO, |sum| *sum);
                Number::Decimal(decimals.add(whole).add(doubles))
            }
        }
    }

    fn doubles(&self) -> f64 {
        let mut sum = Self { whole: 0, ..self.clone() };
        if self.whole != 0 {
            sum.add_double(whole_to_f64(self.whole));
        }
        if sum.double.is_finite() { sum.double + sum.error } else { sum.double }
    }
}

#[expect(clippy::cast_precision_loss, reason = "rounds to the nearest double")]
fn whole_to_f64(whole: i128) -> f64 {
    whole as f64
}
