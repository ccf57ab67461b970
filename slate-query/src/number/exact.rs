use std::cmp::Ordering;

use super::{compare, decimal::digits};

/// A decimal magnitude without trailing zeros: a canonical form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exact {
    pub(crate) coefficient: u128,
    pub(crate) exponent: i32,
}

impl Exact {
    /// Returns coefficient · 10^exponent in canonical form. Zero keeps its exponent.
    pub(crate) fn new(mut coefficient: u128, mut exponent: i32) -> Self {
        if coefficient != 0 {
            // Every multiple of 10^n is a multiple of 2^n, which is tested without dividing.
            for step in [16, 8, 4, 2, 1] {
                let power = 10_u128.pow(step);
                while coefficient.trailing_zeros() >= step && coefficient.is_multiple_of(power) {
                    coefficient /= power;
                    exponent += i32::try_from(step).unwrap_or_default();
                }
            }
        }
        Self { coefficient, exponent }
    }

    /// Returns the power of ten of the first digit.
    pub(crate) fn adjusted(self) -> i32 {
        i32::try_from(digits(self.coefficient)).unwrap_or_default() - 1 + self.exponent
    }
}

/// Returns the greatest finite double that is not above the positive number coefficient · 10^exponent, and how the
/// number compares with it.
pub(crate) fn bracket_double(coefficient: u128, exponent: i32) -> (f64, Ordering) {
    let mut double = compare::nearest(coefficient, exponent).min(f64::MAX);
    loop {
        match compare::magnitude_double(coefficient, exponent, double) {
            // Zero is below every positive number, so the loop ends.
            Ordering::Less => double = f64::from_bits(double.to_bits() - 1),
            order => return (double, order),
        }
    }
}
