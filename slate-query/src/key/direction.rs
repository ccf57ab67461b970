/// The direction of a field in an index or a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Lowest first.
    Ascending,
    /// Highest first: the key bytes are inverted.
    Descending,
}

impl Direction {
    /// Returns the number that stands for the direction in a pattern or a sort: 1 or -1.
    pub fn sign(self) -> i32 {
        match self {
            Self::Ascending => 1,
            Self::Descending => -1,
        }
    }

    /// Returns the opposite direction.
    #[must_use]
    pub fn reversed(self) -> Self {
        match self {
            Self::Ascending => Self::Descending,
            Self::Descending => Self::Ascending,
        }
    }

    /// Returns the byte that key bytes are XORed with.
    #[inline]
    pub(super) fn mask(self) -> u8 {
        match self {
            Self::Ascending => 0,
            Self::Descending => 0xff,
        }
    }

    /// Converts ascending key bytes to this direction, or back.
    #[inline]
    pub fn apply(self, bytes: &mut [u8]) {
        match self {
            Self::Ascending => {}
            Self::Descending => bytes.iter_mut().for_each(|byte| *byte = !*byte),
        }
    }
}
