/// The direction of a field in an index or a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Lowest first.
    Ascending,
    /// Highest first: the key bytes are inverted.
    Descending,
}

impl Direction {
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
