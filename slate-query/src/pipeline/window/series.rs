//! Functions over the documents around the current one that are not accumulators.

use std::ops::Range;

use super::{
    Partition,
    column::Column,
    function::{Divisor, Operand, refused},
};
use crate::{
    Code, Error, Result,
    expression::Evaluated,
    number::{Number, Sum},
    raw::{Doc, Kind, OwnedValue, Value},
};

/// How nulls are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filling {
    /// The last value before the null.
    Last,
    /// The value on the line between the last value before the null and the next one after it.
    Linear,
}

/// Returns the value of the document at a distance from `row`; `default` if there is none.
pub(super) fn shifted(
    column: &Column<Operand>,
    row: usize,
    by: i64,
    default: Option<&OwnedValue>,
) -> Evaluated<'static> {
    let distance = usize::try_from(by.unsigned_abs()).unwrap_or(usize::MAX);
    let place = if by < 0 { row.checked_sub(distance) } else { row.checked_add(distance) };
    match place.and_then(|place| column.get(place)) {
        Some(Operand { value: Some(value), .. }) => Evaluated::Owned(value.clone()),
        _ => default.cloned().map_or(Evaluated::Missing, Evaluated::Owned),
    }
}

/// Replaces nulls.
#[derive(Debug, Default)]
pub(super) struct Fill {
    /// The last row with a value, where the line for linear filling starts.
    before: Option<usize>,
    /// For `$locf`: the last value.
    last: Option<OwnedValue>,
    /// The sort value of the row before, and whether it is a date.
    place_before: Option<(Number, bool)>,
    /// The next row with a value, or the end of the partition, if it is after the current row.
    after: usize,
}

impl Fill {
    /// Returns the value of the document at `row`, or its replacement. Called for each row in order.
    pub(super) fn value(
        &mut self,
        how: Filling,
        partition: &Partition,
        column: &Column<Operand>,
        row: usize,
    ) -> Result<Evaluated<'static>> {
        let value_at = |row: usize| column.get(row).and_then(Operand::present);
        if how == Filling::Linear {
            self.check_linear(partition, value_at(row), row)?;
        }
        if let Some(value) = value_at(row) {
            match how {
                Filling::Last => self.last = Some(value.to_owned()),
                Filling::Linear => self.before = Some(row),
            }
            return Ok(Evaluated::Owned(value.to_owned()));
        }
        if how == Filling::Last {
            return Ok(self.last.clone().map_or(Evaluated::NULL, Evaluated::Owned));
        }
        let Some(before) = self.before else { return Ok(Evaluated::NULL) };
        if self.after <= row {
            let next = (row + 1..column.len()).find(|row| value_at(*row).is_some());
            self.after = next.unwrap_or(column.len());
        }
        let number = |row| value_at(row).and_then(Number::of);
        let (Some(y0), Some(y1)) = (number(before), number(self.after)) else { return Ok(Evaluated::NULL) };
        // The document after is checked before its value is used, too.
        Self { place_before: self.place_before, ..Self::default() }.check_linear(partition, None, self.after)?;
        let (x0, x, x1) = (place(partition, before)?, place(partition, row)?, place(partition, self.after)?);
        Ok(y0.plus(x.minus(x0).times(y1.minus(y0).over(x1.minus(x0)))).into())
    }

    /// Checks the value and the sort value of a document, in the order of documents: a line needs numbers at different places, of one kind.
    fn check_linear(&mut self, partition: &Partition, value: Option<Value<'_>>, row: usize) -> Result<()> {
        if let Some(value) = value.filter(|value| Number::of(*value).is_none()) {
            let message = format!("$linearFill takes numbers, not {}", value.kind().alias());
            return Err(Error::new(Code::TYPE_MISMATCH, message));
        }
        let is_date = partition.sort_value(row).is_some_and(|value| value.kind() == Kind::DateTime);
        let here = (place(partition, row)?, is_date);
        match self.place_before.replace(here) {
            Some(before) if before == here => {
                Err(Error::new(Code(6_050_106), "$linearFill takes a sortBy field whose values differ"))
            }
            Some((_, was_date)) if was_date != is_date => {
                let message = "$linearFill takes a sortBy field of either numbers or dates";
                Err(Error::new(Code::TYPE_MISMATCH, message))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether the value for `row`, which the column contains, can be computed without documents that were not
    /// read yet.
    pub(super) fn is_ready(&self, how: Filling, column: &Column<Operand>, row: usize) -> bool {
        let has_value = |row: usize| column.get(row).and_then(Operand::present).is_some();
        let is_between = how == Filling::Linear && self.before.is_some() && !has_value(row);
        !is_between || self.after > row || has_value(column.len() - 1)
    }

    /// Returns the first row that the values of later rows still need; earlier ones can be released. `None` if no row so far is needed.
    pub(super) fn first_needed(&self) -> Option<usize> {
        self.before
    }
}

/// Returns the sort value of a document as a number.
pub(super) fn place(partition: &Partition, row: usize) -> Result<Number> {
    let value = partition.sort_value(row);
    let number = value.and_then(|value| match value.kind() {
        Kind::DateTime => value.as_millis().map(Number::Int64),
        _ => Number::of(value),
    });
    number.ok_or_else(|| {
        let kind = value.map_or("missing", |value| value.kind().alias());
        Error::new(Code::TYPE_MISMATCH, format!("the sortBy field must be a number or a date, not {kind}"))
    })
}

/// Returns the weight of the current value in a moving average: `alpha`, or `2 / (N + 1)`.
pub(super) fn alpha(name: &str, n: Option<Value<'_>>, alpha: Option<Value<'_>>) -> Result<Number> {
    match (n, alpha) {
        (Some(n), None) => {
            let n = Number::of(n).and_then(Number::to_i64).filter(|n| *n > 0);
            let n = n.ok_or_else(|| refused(name, "takes a positive whole number as 'N'"))?;
            Ok(Number::Int32(2).over(Number::Int64(n.saturating_add(1))))
        }
        (None, Some(alpha)) => {
            let number = Number::of(alpha).filter(|alpha| (0.0..1.0).contains(&alpha.to_f64()) && alpha.to_f64() > 0.0);
            number.ok_or_else(|| refused(name, "takes a number between 0 and 1 as 'alpha'"))
        }
        _ => Err(refused(name, "takes either 'N' or 'alpha'")),
    }
}

/// An exponential moving average.
#[derive(Debug, Default)]
pub(super) struct MovingAverage(Option<Number>);

impl MovingAverage {
    /// Returns the average up to the next value; null for a value that is not a number, which is left out.
    pub(super) fn next(&mut self, alpha: Number, value: Option<Value<'_>>) -> Evaluated<'static> {
        let Some(value) = value.and_then(Number::of) else { return Evaluated::NULL };
        let average = match self.0 {
            None => value.over(Number::Int32(1)),
            Some(before) => value.times(alpha).plus(before.times(Number::Int32(1).minus(alpha))),
        };
        self.0 = Some(average);
        average.into()
    }
}

/// The covariance of the pairs of numbers in the windows of a partition, by the online algorithm. Other operands are left out.
/// Pairs with an infinity or NaN do not count and make the result infinite or NaN. Continues while the window only grows.
#[derive(Debug, Default)]
pub(super) struct Covariance {
    window: Range<usize>,
    n: i32,
    x: Sum,
    y: Sum,
    products: Sum,
}

impl Covariance {
    pub(super) fn value(
        &mut self,
        divisor: Divisor,
        column: &Column<Operand>,
        window: Range<usize>,
    ) -> Evaluated<'static> {
        if self.window.start != window.start {
            *self = Self { window: window.start..window.start, ..Self::default() };
        }
        column.range(self.window.end..window.end).iter().filter_map(pair).for_each(|(x, y)| self.add(x, y));
        self.window = window;
        let by = match divisor {
            Divisor::Population if self.n == 1 => return Number::Double(0.0).into(),
            Divisor::Population => self.n,
            Divisor::Sample => self.n - 1,
        };
        match self.products.total() {
            _ if by <= 0 => Evaluated::NULL,
            Number::Decimal(products) => Number::Decimal(products).over(Number::Double(by.into())).into(),
            products => Number::Double(products.to_f64() / f64::from(by)).into(),
        }
    }

    fn add(&mut self, x: Number, y: Number) {
        if !x.is_finite() || !y.is_finite() {
            return self.products.add(not_finite(x, y));
        }
        let mean = |sum: &Sum, n: i32| sum.total().over(Number::Int32(n));
        let mean_before = (self.n > 0).then(|| mean(&self.x, self.n));
        self.n = self.n.saturating_add(1);
        self.x.add(x);
        self.y.add(y);
        if let Some(mean_before) = mean_before {
            self.products.add(x.minus(mean_before).times(y.minus(mean(&self.y, self.n))));
        }
    }
}

/// Returns the infinity that a pair has, NaN if it has none or two of different signs. The result is a decimal if one
/// of the numbers is a decimal.
fn not_finite(x: Number, y: Number) -> Number {
    let is_decimal = [x, y].iter().any(|number| matches!(number, Number::Decimal(_)));
    let infinities = [x, y].into_iter().filter(|number| number.is_infinite()).map(Number::to_f64);
    let sum = if x.is_nan() || y.is_nan() { f64::NAN } else { infinities.sum() };
    if is_decimal { Number::Decimal(Number::Double(sum).to_decimal()) } else { Number::Double(sum) }
}

/// Returns whether no number is infinite or NaN.
fn are_finite(window: &[Operand]) -> bool {
    window.iter().filter_map(Operand::value).filter_map(Number::of).all(Number::is_finite)
}

/// Returns the standard deviation of a window that slides, if MongoDB's result differs from that for a window that only
/// grows.
pub(super) fn sliding_deviation(name: &str, window: &[Operand]) -> Option<Evaluated<'static>> {
    if !are_finite(window) {
        return Some(Evaluated::NULL);
    }
    let numbers = window.iter().filter_map(Operand::value).filter_map(Number::of).take(2).count();
    (numbers == 1 && name == "$stdDevPop").then(|| Number::Int32(0).into())
}

fn pair(operand: &Operand) -> Option<(Number, Number)> {
    let mut values = operand.value()?.as_array().into_iter().flat_map(Doc::values);
    let (x, y) = (Number::of(values.next()?)?, Number::of(values.next()?)?);
    values.next().is_none().then_some((x, y))
}
