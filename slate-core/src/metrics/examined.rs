use std::ops::{Add, AddAssign};

/// How many keys and how many documents were examined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Examined {
    pub(crate) keys: u64,
    pub(crate) documents: u64,
}

impl Examined {
    /// Returns the counts of the lookup of one key: `documents` is 1 if there is a record with the key, else 0.
    pub(crate) fn lookup(documents: u64) -> Self {
        Self { keys: 1, documents }
    }

    /// Returns the difference to an earlier count.
    pub(crate) fn since(self, before: Self) -> Self {
        let keys = self.keys.saturating_sub(before.keys);
        Self { keys, documents: self.documents.saturating_sub(before.documents) }
    }
}

impl Add for Examined {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { keys: self.keys + other.keys, documents: self.documents + other.documents }
    }
}

impl AddAssign for Examined {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}
