//! The big-integer arithmetic needed to compare a decimal with a double exactly.

use std::cmp::Ordering;

/// The number of 64-bit limbs. The longest product is a mantissa (53 bits) times 5^358 (832 bits), shifted by up to
/// 1,074 bits.
const LIMBS: usize = 36;

struct Big {
    limbs: [u64; LIMBS],
}

impl Big {
    fn new(value: u128) -> Self {
        let mut limbs = [0; LIMBS];
        let [low, high, ..] = &mut limbs;
        (*low, *high) = split(value);
        Self { limbs }
    }

    fn multiply(&mut self, by: u64) {
        let mut carry = 0;
        for limb in &mut self.limbs {
            let (low, high) = split(u128::from(*limb) * u128::from(by) + u128::from(carry));
            (*limb, carry) = (low, high);
        }
    }

    /// Multiplies by 5^power.
    fn multiply_by_five(&mut self, power: u32) {
        /// 5^27, the greatest power that fits in a limb.
        const STEP: u64 = 5_u64.pow(27);
        for _ in 0..power / 27 {
            self.multiply(STEP);
        }
        self.multiply(5_u64.pow(power % 27));
    }

    /// Multiplies by 2^power.
    fn shift(&mut self, power: u32) {
        let limbs = usize::try_from(power / 64).unwrap_or(LIMBS).min(LIMBS);
        self.limbs.rotate_right(limbs);
        if let Some(low) = self.limbs.get_mut(..limbs) {
            low.fill(0);
        }
        self.multiply(1 << (power % 64));
    }

    fn cmp(&self, other: &Self) -> Ordering {
        self.limbs.iter().rev().cmp(other.limbs.iter().rev())
    }
}

/// Compares coefficient · 10^exponent with mantissa · 2^power. Both must be within the range of doubles, or close to
/// it.
pub(super) fn compare(coefficient: u128, exponent: i32, mantissa: u64, power: i32) -> Ordering {
    let (mut decimal, mut double) = (Big::new(coefficient), Big::new(u128::from(mantissa)));
    // 10^exponent = 5^exponent · 2^exponent. Negative powers move to the other side.
    let fives = if exponent >= 0 { &mut decimal } else { &mut double };
    fives.multiply_by_five(exponent.unsigned_abs());
    let twos = power - exponent;
    let shifted = if twos >= 0 { &mut double } else { &mut decimal };
    shifted.shift(twos.unsigned_abs());
    decimal.cmp(&double)
}

#[expect(clippy::cast_possible_truncation, reason = "splits the number into halves")]
fn split(value: u128) -> (u64, u64) {
    (value as u64, (value >> 64) as u64)
}
