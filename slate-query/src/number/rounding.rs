use super::{Decimal, Sign, decimal::divide_half_even};

/// How dropped digits affect the last remaining one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// To the nearest digit; halfway between two digits, to the even digit.
    HalfEven,
    /// Toward zero: the dropped digits have no effect.
    TowardZero,
    /// Toward positive infinity.
    Up,
    /// Toward negative infinity.
    Down,
}

impl Decimal {
    /// Rounds to `places` digits after the point. If `places` is negative, rounds to a multiple of 10^-`places`. A number
    /// with fewer digits stays as it is.
    #[must_use]
    pub fn to_places(self, places: i32, mode: Rounding) -> Self {
        let Self::Finite { sign, coefficient, exponent } = self else { return self };
        let Some(drop) = u32::try_from(-places - exponent).ok().filter(|drop| *drop > 0) else { return self };
        let (whole, rest) = match 10_u128.checked_pow(drop) {
            Some(power) => (coefficient / power, !coefficient.is_multiple_of(power)),
            None => (0, coefficient != 0),
        };
        let is_away = match mode {
            Rounding::TowardZero => false,
            Rounding::HalfEven => return Self::rounded(sign, divide_half_even(coefficient, drop), -places),
            Rounding::Up => rest && sign == Sign::Positive,
            Rounding::Down => rest && sign == Sign::Negative,
        };
        Self::rounded(sign, whole + u128::from(is_away), -places)
    }

    /// Rounds like [`to_places`](Self::to_places), and appends zeros up to `places` digits after the point. A number that
    /// would need more than 34 digits gets as many zeros as fit.
    #[must_use]
    pub fn with_places(self, places: i32, mode: Rounding) -> Self {
        let rounded = self.to_places(places, mode);
        let Self::Finite { sign, coefficient, exponent } = rounded else { return self };
        let Ok(missing) = u32::try_from(exponent + places) else { return rounded };
        let longer = 10_u128.checked_pow(missing).and_then(|power| coefficient.checked_mul(power));
        match longer.filter(|longer| *longer <= super::MAX_COEFFICIENT) {
            Some(coefficient) => Self::Finite { sign, coefficient, exponent: -places },
            None if coefficient == 0 => Self::Finite { sign, coefficient, exponent: -places },
            None => rounded.lengthened(),
        }
    }
}
