/// How many keys a range holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimate {
    /// Counted.
    Exact(u64),
    /// The counting stopped at its cap, and there are more.
    AtLeast(u64),
}

impl Estimate {
    /// The number, whether it is exact or the least there are.
    pub fn at_least(self) -> u64 {
        match self {
            Self::Exact(count) | Self::AtLeast(count) => count,
        }
    }

    /// What a count that stops at `cap` makes of `count` keys.
    pub(crate) fn capped(count: u64, cap: u64) -> Self {
        if count <= cap { Self::Exact(count) } else { Self::AtLeast(cap) }
    }
}
