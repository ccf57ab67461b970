/// A set of a filter's conjuncts, by position. The set never contains conjuncts after the 64th: they stay in the filter
/// even if their bounds are exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Conjuncts(u64);

impl Conjuncts {
    pub(crate) fn one(place: usize) -> Self {
        Self(u32::try_from(place).ok().and_then(|place| 1_u64.checked_shl(place)).unwrap_or_default())
    }

    #[must_use]
    pub(crate) fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn contains(self, place: usize) -> bool {
        self.0 & Self::one(place).0 != 0
    }

    /// Returns whether the set has conjuncts, and all of them are in the other set.
    pub(crate) fn are_within(self, other: Self) -> bool {
        self.0 != 0 && self.0 & !other.0 == 0
    }

    /// Returns whether the set contains all of a filter's `conjuncts`.
    pub(crate) fn are_all(self, conjuncts: usize) -> bool {
        usize::try_from(self.0.count_ones()).is_ok_and(|held| held == conjuncts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_64_positions_are_stored() {
        let odd =
            [1, 3, 63, 64, 65, usize::MAX].map(Conjuncts::one).into_iter().fold(Conjuncts::default(), Conjuncts::union);
        for place in [0, 1, 2, 3, 62, 63, 64, 65, 1 << 32, usize::MAX] {
            assert_eq!(odd.contains(place), [1, 3, 63].contains(&place), "{place}");
        }
        assert!(odd.are_all(3) && !odd.are_all(6));
        assert!(Conjuncts::default().are_all(0));
    }
}
