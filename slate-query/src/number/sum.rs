use super::{Decimal, Number};

/// A sum of numbers in the widest of their types. The rounding errors of doubles are added up separately (Neumaier's
/// summation), so that the order of the numbers hardly matters. Integers are summed exactly.
#[derive(Clone, Debug)]
pub struct Sum {
    widest: Width,
    whole: i64,
    double: f64,
    /// The accumulated rounding error of `double`.
    error: f64,
    /// Boxed because a group has a sum per accumulator, and few sums need it.
    rare: Option<Box<Rare>>,
}

/// The parts that few sums have.
#[derive(Clone, Debug, Default)]
struct Rare {
    /// The integers that did not fit into [`Sum::whole`].
    whole: i128,
    decimal: Option<Decimal>,
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
        Self { widest: Width::Int32, whole: 0, double: 0.0, error: 0.0, rare: None }
    }
}

impl Sum {
    /// Adds a number.
    #[inline]
    pub fn add(&mut self, number: Number) {
        match number {
            Number::Int32(int) => self.add_whole(int.into(), Width::Int32),
            Number::Int64(int) => self.add_whole(int, Width::Int64),
            Number::Double(double) => {
                self.widest = self.widest.max(Width::Double);
                self.add_double(double);
            }
            Number::Decimal(decimal) => {
                self.widest = Width::Decimal;
                self.add_decimal(decimal);
            }
        }
    }

    #[inline]
    fn add_whole(&mut self, int: i64, width: Width) {
        self.widest = self.widest.max(width);
        match self.whole.checked_add(int) {
            Some(sum) => self.whole = sum,
            None => self.rare().whole += i128::from(int),
        }
    }

    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// Returns the sum of all integers.
    fn whole(&self) -> i128 {
        i128::from(self.whole) + self.rare.as_ref().map_or(0, |rare| rare.whole)
    }

    fn decimal(&self) -> Option<Decimal> {
        self.rare.as_ref()?.decimal
    }

    /// Adds a number `times` times, with the result that repeated calls of [`add`](Self::add) would have.
    #[inline]
    pub fn add_times(&mut self, number: Number, times: u64) {
        if times == 1 {
            return self.add(number);
        }
        self.add_many(number, times);
    }

    #[inline(never)]
    fn add_many(&mut self, number: Number, times: u64) {
        match number {
            // The first addition determines the type; integers are exact, so the others are one multiplication.
            Number::Int32(_) | Number::Int64(_) if times > 0 => {
                self.add(number);
                let int = number.to_i64().unwrap_or_default();
                let rest = i128::from(int) * i128::from(times - 1);
                match i64::try_from(rest).ok().and_then(|rest| self.whole.checked_add(rest)) {
                    Some(sum) => self.whole = sum,
                    None => self.rare().whole += rest,
                }
            }
            number => (0..times).for_each(|_| self.add(number)),
        }
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: &Self) {
        self.add_whole(other.whole, other.widest);
        self.add_double(other.double);
        self.add_double(other.error);
        if let Some(rare) = &other.rare {
            self.rare().whole += rare.whole;
            if let Some(decimal) = rare.decimal {
                self.add_decimal(decimal);
            }
        }
    }

    fn add_decimal(&mut self, decimal: Decimal) {
        let sum = &mut self.rare().decimal;
        *sum = Some(sum.map_or(decimal, |sum| sum.add(decimal)));
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

    /// Returns the sum in the widest type; int32 overflows into int64, and int64 into a double.
    pub fn total(&self) -> Number {
        match self.widest {
            Width::Int32 | Width::Int64 => {
                let whole = self.whole();
                match (i32::try_from(whole), i64::try_from(whole)) {
                    (Ok(int), _) if self.widest == Width::Int32 => Number::Int32(int),
                    (_, Ok(int)) => Number::Int64(int),
                    (_, Err(_)) => Number::Double(whole_to_f64(whole)),
                }
            }
            Width::Double => Number::Double(self.doubles()),
            Width::Decimal => {
                let whole = self.whole();
                let whole = i64::try_from(whole).map_or_else(|_| Decimal::exactly(whole_to_f64(whole)), Decimal::from);
                // As in MongoDB, the sum of doubles and its error are added as decimals, so that no digit of them is lost.
                let others = whole.add(Decimal::exactly(self.double)).add(Decimal::exactly(self.error));
                Number::Decimal(self.decimal().unwrap_or(Decimal::ZERO).add(others))
            }
        }
    }

    fn doubles(&self) -> f64 {
        let mut sum = Self { rare: None, ..self.clone() };
        let whole = self.whole();
        if whole != 0 {
            sum.add_double(whole_to_f64(whole));
        }
        if sum.double.is_finite() { sum.double + sum.error } else { sum.double }
    }
}

#[expect(clippy::cast_precision_loss, reason = "rounds to the nearest double")]
fn whole_to_f64(whole: i128) -> f64 {
    whole as f64
}
