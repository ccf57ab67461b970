//! Quotients, remainders and square roots. Decimals are divided digit by digit, as on paper.

use super::{Decimal, Number, Sign, arithmetic::product_sign, decimal::digits};

/// The digits of a quotient before it is rounded; more than a decimal has.
const QUOTIENT_DIGITS: u32 = 36;

impl Number {
    /// Returns the quotient: a decimal if one of the numbers is a decimal, otherwise a double.
    #[must_use]
    pub fn over(self, divisor: Self) -> Self {
        match (self, divisor) {
            (Self::Decimal(_), _) | (_, Self::Decimal(_)) => {
                Self::Decimal(self.to_decimal().divide(divisor.to_decimal()))
            }
            _ => Self::Double(self.to_f64() / divisor.to_f64()),
        }
    }

    /// Returns the remainder of a division that truncates, in the wider type. The divisor must not be zero.
    #[must_use]
    pub fn modulo(self, divisor: Self) -> Self {
        match (self, divisor) {
            (Self::Decimal(_), _) | (_, Self::Decimal(_)) => {
                Self::Decimal(self.to_decimal().remainder(divisor.to_decimal()))
            }
            (Self::Double(_), _) | (_, Self::Double(_)) => Self::Double(self.to_f64() % divisor.to_f64()),
            (Self::Int32(a), Self::Int32(b)) => Self::Int32(a.checked_rem(b).unwrap_or(0)),
            (a, b) => {
                let (a, b) = (a.to_i64().unwrap_or_default(), b.to_i64().unwrap_or(1));
                Self::Int64(a.checked_rem(b).unwrap_or(0))
            }
        }
    }
}

impl Decimal {
    /// Returns the number with the opposite sign.
    #[must_use]
    pub fn negated(self) -> Self {
        match self {
            Self::Nan => Self::Nan,
            Self::Infinite(sign) => Self::Infinite(product_sign(sign, Sign::Negative)),
            Self::Finite { sign, coefficient, exponent } => {
                Self::Finite { sign: product_sign(sign, Sign::Negative), coefficient, exponent }
            }
        }
    }

    /// Returns the number without its sign.
    #[must_use]
    pub fn abs(self) -> Self {
        match self {
            Self::Infinite(Sign::Negative) | Self::Finite { sign: Sign::Negative, .. } => self.negated(),
            other => other,
        }
    }

    /// Returns the quotient, rounded half to even to 34 digits. Division by zero gives an infinity, or NaN for 0 / 0.
    #[must_use]
    pub fn divide(self, divisor: Self) -> Self {
        match (self, divisor) {
            (Self::Nan, _) | (_, Self::Nan) | (Self::Infinite(_), Self::Infinite(_)) => Self::Nan,
            (Self::Infinite(a), Self::Finite { sign: b, .. }) => Self::Infinite(product_sign(a, b)),
            (Self::Finite { sign: a, .. }, Self::Infinite(b)) => {
                Self::Finite { sign: product_sign(a, b), coefficient: 0, exponent: super::MIN_EXPONENT }
            }
            (Self::Finite { coefficient: 0, .. }, Self::Finite { coefficient: 0, .. }) => Self::Nan,
            (Self::Finite { sign: a, .. }, Self::Finite { sign: b, coefficient: 0, .. }) => {
                Self::Infinite(product_sign(a, b))
            }
            (
                Self::Finite { sign: a, coefficient: x, exponent: p },
                Self::Finite { sign: b, coefficient: y, exponent: q },
            ) => {
                // The remainder is below the divisor, so ten times it has at most 35 digits.
                let (mut quotient, mut rest, mut exponent) = (x / y, x % y, p - q);
                while rest != 0 && digits(quotient) < QUOTIENT_DIGITS {
                    quotient = quotient * 10 + rest * 10 / y;
                    rest = rest * 10 % y;
                    exponent -= 1;
                }
                if rest != 0 {
                    (quotient, exponent) = (quotient * 10 + 1, exponent - 1);
                }
                Self::rounded(product_sign(a, b), quotient, exponent)
            }
        }
    }

    /// Returns the remainder of a division that truncates, exact, with the sign of the dividend.
    #[must_use]
    pub fn remainder(self, divisor: Self) -> Self {
        match (self, divisor) {
            (Self::Nan | Self::Infinite(_), _) | (_, Self::Nan | Self::Finite { coefficient: 0, .. }) => Self::Nan,
            (Self::Finite { .. }, Self::Infinite(_)) => self,
            (Self::Finite { sign, coefficient: x, exponent: p }, Self::Finite { coefficient: y, exponent: q, .. }) => {
                if p >= q {
                    let rest = (q..p).fold(x % y, |rest, _| rest * 10 % y);
                    return Self::Finite { sign, coefficient: rest, exponent: q };
                }
                match 10_u128.checked_pow(p.abs_diff(q)).and_then(|power| y.checked_mul(power)) {
                    Some(divisor) => Self::Finite { sign, coefficient: x % divisor, exponent: p },
                    // The divisor is greater than any coefficient.
                    None => self,
                }
            }
        }
    }

    /// Returns the square root, rounded to 34 digits; NaN of a negative number.
    #[must_use]
    pub fn sqrt(self) -> Self {
        let (coefficient, exponent) = match self {
            Self::Finite { coefficient: 0, exponent, sign } => {
                return Self::Finite { sign, coefficient: 0, exponent: exponent.div_euclid(2) };
            }
            Self::Finite { sign: Sign::Positive, coefficient, exponent } => (coefficient, exponent),
            Self::Infinite(Sign::Positive) => return self,
            Self::Nan | Self::Infinite(_) | Self::Finite { .. } => return Self::Nan,
        };
        // An even exponent is halved exactly.
        let square = if exponent % 2 == 0 { coefficient } else { coefficient * 10 };
        let (mut root, mut rest, mut exponent) = (0_u128, 0_u128, exponent.div_euclid(2));
        // Each step appends a digit to the root, for the next two digits of the square. The rest is at most twice the root.
        let mut step = |pair: u128| {
            rest = rest * 100 + pair;
            let digit = (0..10).rev().find(|digit| (20 * root + digit) * digit <= rest).unwrap_or_default();
            rest -= (20 * root + digit) * digit;
            root = root * 10 + digit;
            (root, rest)
        };
        let mut last = (0, 0);
        for place in (0..digits(square).div_ceil(2)).rev() {
            last = step(square / 100_u128.pow(place) % 100);
        }
        while last.1 != 0 && digits(last.0) < QUOTIENT_DIGITS - 1 {
            (last, exponent) = (step(0), exponent - 1);
        }
        let (root, rest) = last;
        let (root, exponent) = if rest == 0 { (root, exponent) } else { (root * 10 + 1, exponent - 1) };
        Self::rounded(Sign::Positive, root, exponent)
    }

    /// Returns the 34 digits nearest to a double, without zeros at the end.
    #[must_use]
    pub fn exactly(double: f64) -> Self {
        if double.is_finite() && double != 0.0 {
            return format!("{double:.33e}").parse::<Self>().unwrap_or(Self::Nan).shortened();
        }
        Self::from_f64(double)
    }

    /// Returns the same number without zeros at the end of its fraction.
    #[must_use]
    pub fn shortened(self) -> Self {
        let Self::Finite { sign, mut coefficient, mut exponent } = self else { return self };
        while exponent < 0 && coefficient != 0 && coefficient.is_multiple_of(10) {
            (coefficient, exponent) = (coefficient / 10, exponent + 1);
        }
        Self::Finite { sign, coefficient, exponent }
    }

    /// Lowers a positive exponent to 0, or until the coefficient has 34 digits. The value stays the same.
    #[must_use]
    pub fn to_units(self) -> Self {
        let Self::Finite { sign, mut coefficient, mut exponent } = self else { return self };
        while exponent > 0 && digits(coefficient) < 34 {
            (coefficient, exponent) = (coefficient * 10, exponent - 1);
        }
        Self::Finite { sign, coefficient, exponent }
    }

    /// Returns the same number with as many zeros at the end of its fraction as fit into 34 digits.
    #[must_use]
    pub fn lengthened(self) -> Self {
        let Self::Finite { sign, mut coefficient, mut exponent } = self else { return self };
        while coefficient != 0 && digits(coefficient) < 34 && exponent > super::MIN_EXPONENT {
            (coefficient, exponent) = (coefficient * 10, exponent - 1);
        }
        Self::Finite { sign, coefficient, exponent }
    }
}
