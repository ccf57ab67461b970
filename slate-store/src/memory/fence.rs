use std::cmp::Ordering;

use equivalent::{Comparable, Equivalent};

use super::key::{Key, Sought};

/// The keys that a branch is around: from `low` on, to below `end`, or all that come where there is no end.
///
/// Fences are ordered by `low`. Those of one tree meet and leave no key out.
#[derive(Clone)]
pub(super) struct Fence {
    pub(super) low: Key,
    pub(super) end: Option<Key>,
}

impl Fence {
    /// Around all keys.
    pub(super) fn all() -> Self {
        Self { low: Key::new(&[]), end: None }
    }

    /// Whether `key`, which is not below the fence, lies within.
    #[inline]
    pub(super) fn is_above(&self, key: &Sought<'_>) -> bool {
        self.end.as_ref().is_none_or(|end| key.compare(end) == Ordering::Less)
    }
}

impl Ord for Fence {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.low.cmp(&other.low)
    }
}

impl PartialOrd for Fence {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Fence {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.low == other.low
    }
}

impl Eq for Fence {}

/// The fence that a key lies within.
pub(super) struct Around<'k>(pub(super) &'k Sought<'k>);

impl Comparable<Fence> for Around<'_> {
    #[inline]
    fn compare(&self, fence: &Fence) -> Ordering {
        match self.0.compare(&fence.low) {
            Ordering::Greater if fence.is_above(self.0) => Ordering::Equal,
            order => order,
        }
    }
}

impl Equivalent<Fence> for Around<'_> {
    #[inline]
    fn equivalent(&self, fence: &Fence) -> bool {
        self.compare(fence) == Ordering::Equal
    }
}

/// The fence that begins with a key.
pub(super) struct Begins<'k>(pub(super) &'k Sought<'k>);

impl Comparable<Fence> for Begins<'_> {
    #[inline]
    fn compare(&self, fence: &Fence) -> Ordering {
        self.0.compare(&fence.low)
    }
}

impl Equivalent<Fence> for Begins<'_> {
    #[inline]
    fn equivalent(&self, fence: &Fence) -> bool {
        self.compare(fence) == Ordering::Equal
    }
}
