use std::ops::Bound;

/// A half-open range of keys, borrowed: `start` is in it, `end` is not; `None` is open.
///
/// A range whose `end` is at or below its `start` is empty, not an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds<'a> {
    /// The smallest key in the range; `None` for the first there is.
    pub start: Option<&'a [u8]>,
    /// The smallest key above the range; `None` for no end.
    pub end: Option<&'a [u8]>,
}

impl<'a> Bounds<'a> {
    /// Every key.
    pub const ALL: Self = Self { start: None, end: None };

    /// The keys that lie in both.
    #[cfg(any(feature = "redb", feature = "rocksdb"))]
    pub(crate) fn within(self, other: Self) -> Self {
        let end = match (self.end, other.end) {
            (Some(end), Some(other)) => Some(end.min(other)),
            (end, other) => end.or(other),
        };
        // No start is the least.
        Self { start: self.start.max(other.start), end }
    }

    /// Whether `key` lies in the range.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.start.is_none_or(|start| start <= key) && self.end.is_none_or(|end| key < end)
    }

    pub(crate) fn lower(self) -> Bound<&'a [u8]> {
        self.start.map_or(Bound::Unbounded, Bound::Included)
    }

    pub(crate) fn upper(self) -> Bound<&'a [u8]> {
        self.end.map_or(Bound::Unbounded, Bound::Excluded)
    }

    /// Whether a key that lies beyond the lower bound lies within both.
    #[inline]
    pub(crate) fn below_end(self, key: &[u8]) -> bool {
        self.end.is_none_or(|end| key < end)
    }

    /// Whether a key that lies beneath the upper bound lies within both.
    #[inline]
    pub(crate) fn above_start(self, key: &[u8]) -> bool {
        self.start.is_none_or(|start| start <= key)
    }

    /// Where a seek lands once confined to these bounds, and which way it looks from there.
    ///
    /// The entry found there still has to be compared with the bound that lies ahead.
    pub(crate) fn confine(self, edge: Edge<'a>) -> Landing<'a> {
        match edge {
            Edge::First => Landing::Up(self.lower()),
            Edge::Last => Landing::Down(self.upper()),
            Edge::AtOrAfter(key) => match self.start {
                Some(start) if key < start => Landing::Up(self.lower()),
                _ => Landing::Up(Bound::Included(key)),
            },
            Edge::Before(key) => match self.end {
                Some(end) if end < key => Landing::Down(self.upper()),
                _ => Landing::Down(Bound::Excluded(key)),
            },
        }
    }

    /// Whether no key can lie in the range, whatever is stored.
    pub fn is_empty(&self) -> bool {
        match (self.start, self.end) {
            (Some(start), Some(end)) => end <= start,
            (None, Some(end)) => end.is_empty(),
            (_, None) => false,
        }
    }
}

/// Where a cursor's seek goes. The cursor's bounds confine it: the entry it lands on lies within them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge<'a> {
    /// The smallest key.
    First,
    /// The greatest key.
    Last,
    /// The smallest key at or above this one.
    AtOrAfter(&'a [u8]),
    /// The greatest key strictly below this one.
    Before(&'a [u8]),
}

/// A cursor's own copy of the bounds it was opened with.
#[derive(Debug, Default)]
pub(crate) struct OwnedBounds {
    start: Option<Box<[u8]>>,
    end: Option<Box<[u8]>>,
}

impl OwnedBounds {
    pub(crate) fn of(bounds: Bounds<'_>) -> Self {
        // No key is below an empty one. To compare a key with it all the same took 60 ns: a processor may handle the load of
        // no bytes from nowhere as a fault.
        let start = bounds.start.filter(|start| !start.is_empty());
        Self { start: start.map(Box::from), end: bounds.end.map(Box::from) }
    }

    #[inline]
    pub(crate) fn bounds(&self) -> Bounds<'_> {
        Bounds { start: self.start.as_deref(), end: self.end.as_deref() }
    }
}

/// A seek's place: the bound that the entry sought lies next to.
pub(crate) enum Landing<'b> {
    /// The smallest entry above the bound.
    Up(Bound<&'b [u8]>),
    /// The greatest entry below the bound.
    Down(Bound<&'b [u8]>),
}

/// Which way a cursor last moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heading {
    Forward,
    Back,
}
