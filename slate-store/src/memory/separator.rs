use std::{cell::RefCell, cmp::Ordering};

use equivalent::{Comparable, Equivalent};

use super::key::{Key, Probe};

/// The key range of a leaf: from `low` up to but not including `end`, or without an upper bound where `end` is `None`.
///
/// Separators are ordered by `low`, so that the map of leaves can be searched by separator. The separators of a tree partition
/// the keys: the first begins with the empty key, each begins where the one before ends, the last has no end.
#[derive(Clone)]
pub(super) struct Separator {
    pub(super) low: Key,
    pub(super) end: Option<Key>,
}

impl Separator {
    /// Returns the range of all keys.
    pub(super) fn all() -> Self {
        Self::from(Key::new(&[]))
    }

    /// Returns whether `key`, which is not below `low`, is below `end`.
    #[inline]
    pub(super) fn is_above(&self, key: &Probe<'_>) -> bool {
        self.end.as_ref().is_none_or(|end| key.compare(end) == Ordering::Less)
    }

    #[inline]
    pub(super) fn contains(&self, key: &Probe<'_>) -> bool {
        key.compare(&self.low) != Ordering::Less && self.is_above(key)
    }
}

/// A search key for the map of leaves: the separator that begins with this key.
impl From<Key> for Separator {
    fn from(low: Key) -> Self {
        Self { low, end: None }
    }
}

impl Ord for Separator {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.low.cmp(&other.low)
    }
}

impl PartialOrd for Separator {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Separator {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.low == other.low
    }
}

impl Eq for Separator {}

/// A search key for the map of leaves: equal to the separator whose range contains this key.
pub(super) struct Around<'k>(pub(super) &'k Probe<'k>);

impl Comparable<Separator> for Around<'_> {
    #[inline(always)]
    fn compare(&self, separator: &Separator) -> Ordering {
        match self.0.compare(&separator.low) {
            Ordering::Greater if separator.is_above(self.0) => Ordering::Equal,
            order => order,
        }
    }
}

/// A search key like [`Around`], for repeating a search that outdated copies of separators misled (see `Tree`).
pub(super) struct Retry<'k> {
    key: &'k Probe<'k>,
    /// Separators that begin at this key or below are known not to contain the search key; `None` until a search was misled.
    misled_by: Option<Key>,
    /// The beginning of the last separator whose range contained the search key; it may be an outdated copy.
    seen: RefCell<Option<Key>>,
}

impl<'k> Retry<'k> {
    pub(super) fn new(key: &'k Probe<'k>) -> Self {
        Self { key, misled_by: None, seen: RefCell::default() }
    }

    /// Rules out the separator that misled the last search. Returns `false` if there was none.
    pub(super) fn rule_out(&mut self) -> bool {
        self.misled_by = self.seen.take();
        self.misled_by.is_some()
    }
}

impl Comparable<Separator> for Retry<'_> {
    fn compare(&self, separator: &Separator) -> Ordering {
        if self.misled_by.as_ref().is_some_and(|low| separator.low <= *low) {
            return Ordering::Greater;
        }
        let order = Around(self.key).compare(separator);
        if order == Ordering::Equal {
            self.seen.replace(Some(separator.low.clone()));
        }
        order
    }
}

impl Equivalent<Separator> for Retry<'_> {
    fn equivalent(&self, separator: &Separator) -> bool {
        self.compare(separator) == Ordering::Equal
    }
}

impl Equivalent<Separator> for Around<'_> {
    #[inline]
    fn equivalent(&self, separator: &Separator) -> bool {
        self.compare(separator) == Ordering::Equal
    }
}
