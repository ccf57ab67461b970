/// The direction in which a field of an index or of a sort runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Lowest first.
    Ascending,
    /// Highest first: the key bytes are inverted.
    Descending,
}

impl Direction {
    /// Ascending where it was descending, and the other way around.
    #[must_use]
    pub fn reversed(self) -> Self {
        match self {
            Self::Ascending => Self::Descending,
            Self::Descending => Self::Ascending,
        }
    }

    /// What the bytes of a key are xor-ed with.
    #[inline]
    pub(super) fn mask(self) -> u8 {
        match self {
            Self::Ascending => 0,
            Self::Descending => 0xff,
        }
    }

    /// Brings ascending key bytes into this direction, or back.
    #[inline]
    pub fn apply(self, bytes: &mut [u8]) {
        match self {
            Self::Ascending => {}
            Self::Descending => bytes.iter_mut().for_each(|byte| *byte = !*byte),
        }
    }
}
