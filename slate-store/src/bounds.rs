use std::ops::Bound;

/// A half-open key range, borrowed: includes `start`, excludes `end`.
///
/// A range whose `end` is at or below its `start` is empty, not an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds<'a> {
    /// The smallest key in the range; `None` for no lower bound.
    pub start: Option<&'a [u8]>,
    /// The smallest key above the range; `None` for no upper bound.
    pub end: Option<&'a [u8]>,
}

impl<'a> Bounds<'a> {
    /// Bounds that contain every key.
    pub const ALL: Self = Self { start: None, end: None };

    /// Returns whether `key` is in the range.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.start.is_none_or(|start| start <= key) && self.end.is_none_or(|end| key < end)
    }

    /// Returns the lower bound as a standard library bound.
    pub fn lower(self) -> Bound<&'a [u8]> {
        self.start.map_or(Bound::Unbounded, Bound::Included)
    }

    /// Returns the upper bound as a standard library bound.
    pub fn upper(self) -> Bound<&'a [u8]> {
        self.end.map_or(Bound::Unbounded, Bound::Excluded)
    }

    /// Returns whether `key` is below the upper bound.
    #[inline]
    pub fn below_end(self, key: &[u8]) -> bool {
        self.end.is_none_or(|end| key < end)
    }

    /// Returns whether `key` is at or above the lower bound.
    #[inline]
    pub fn above_start(self, key: &[u8]) -> bool {
        self.start.is_none_or(|start| start <= key)
    }

    /// Returns where a cursor with these bounds begins to search for `edge`, and in which direction: the tighter of the edge and the bound.
    ///
    /// The entry that is found must still be compared with the other bound.
    pub fn confine(self, edge: Edge<'a>) -> Landing<'a> {
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

    /// Returns whether the range contains no key at all.
    pub fn is_empty(&self) -> bool {
        match (self.start, self.end) {
            (Some(start), Some(end)) => end <= start,
            (None, Some(end)) => end.is_empty(),
            (_, None) => false,
        }
    }
}

/// The target of a cursor's seek. The seek is confined to the cursor's bounds.
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
#[derive(Clone, Debug, Default)]
pub struct OwnedBounds {
    start: Option<Box<[u8]>>,
    end: Option<Box<[u8]>>,
}

impl OwnedBounds {
    /// Copies bounds. An empty start becomes `None`, because no key is below it.
    pub fn of(bounds: Bounds<'_>) -> Self {
        let start = bounds.start.filter(|start| !start.is_empty());
        Self { start: start.map(Box::from), end: bounds.end.map(Box::from) }
    }

    /// Returns the bounds, borrowed.
    #[inline]
    pub fn bounds(&self) -> Bounds<'_> {
        Bounds { start: self.start.as_deref(), end: self.end.as_deref() }
    }
}

/// Where a search begins, and in which direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Landing<'b> {
    /// Upwards, from the smallest entry within this lower bound.
    Up(Bound<&'b [u8]>),
    /// Downwards, from the greatest entry within this upper bound.
    Down(Bound<&'b [u8]>),
}

/// The direction in which a cursor last moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heading {
    Forward,
    Back,
}
