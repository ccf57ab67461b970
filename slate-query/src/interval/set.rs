use super::{Interval, Place};

/// A set of keys as a sorted list of disjoint intervals. None is empty or adjacent to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntervalSet {
    intervals: Intervals,
}

/// Most sets are one interval, which is created and cloned without an allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Intervals {
    One(Interval),
    /// Zero, two or more intervals.
    Many(Vec<Interval>),
}

impl From<Vec<Interval>> for Intervals {
    fn from(mut intervals: Vec<Interval>) -> Self {
        match intervals.pop() {
            Some(only) if intervals.is_empty() => Self::One(only),
            last => {
                intervals.extend(last);
                Self::Many(intervals)
            }
        }
    }
}

impl Intervals {
    #[inline]
    fn as_slice(&self) -> &[Interval] {
        match self {
            Self::One(interval) => std::slice::from_ref(interval),
            Self::Many(intervals) => intervals,
        }
    }
}

impl Default for IntervalSet {
    fn default() -> Self {
        Self { intervals: Intervals::Many(Vec::new()) }
    }
}

impl IntervalSet {
    /// Creates the empty set.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Creates the set of all keys.
    pub fn all() -> Self {
        Self { intervals: Intervals::One(Interval::all()) }
    }

    /// Returns the union of `intervals`, which may be unsorted, overlapping and empty.
    pub fn from(mut intervals: Vec<Interval>) -> Self {
        intervals.retain(|interval| !interval.is_empty());
        intervals.sort_by(|a, b| a.low().cmp(b.low()));
        let mut merged: Vec<Interval> = Vec::with_capacity(intervals.len());
        for interval in intervals {
            match merged.last_mut() {
                Some(last) if interval.low() <= last.high() => {
                    if interval.high() > last.high() {
                        *last = Interval::new(last.low().clone(), interval.high().clone());
                    }
                }
                _ => merged.push(interval),
            }
        }
        Self { intervals: merged.into() }
    }

    /// Returns the union of two sets.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self::from(self.iter().chain(other.iter()).cloned().collect())
    }

    /// Returns the intersection of two sets.
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Self {
        if let (Intervals::One(a), Intervals::One(b)) = (&self.intervals, &other.intervals) {
            return a.intersect(b).into();
        }
        let (mut left, mut right) = (self.iter().peekable(), other.iter().peekable());
        let mut intervals = Vec::new();
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            let both = a.intersect(b);
            if !both.is_empty() {
                intervals.push(both);
            }
            if a.high() <= b.high() {
                left.next();
            } else {
                right.next();
            }
        }
        Self { intervals: intervals.into() }
    }

    /// Returns the set of all keys that are not in this one.
    #[must_use]
    pub fn complement(&self) -> Self {
        let mut low = Place::before([]);
        let mut intervals = Vec::with_capacity(self.len() + 1);
        for interval in self.iter() {
            intervals.push(Interval::new(low, interval.low().clone()));
            low = interval.high().clone();
        }
        intervals.push(Interval::new(low, Place::after([])));
        intervals.retain(|interval| !interval.is_empty());
        Self { intervals: intervals.into() }
    }

    /// Returns the same keys inverted, as in a descending field.
    #[must_use]
    pub fn inverted(&self) -> Self {
        Self { intervals: self.iter().rev().map(Interval::inverted).collect::<Vec<_>>().into() }
    }

    /// Returns the intervals, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Interval> + ExactSizeIterator {
        self.intervals.as_slice().iter()
    }

    /// Returns the number of intervals.
    pub fn len(&self) -> usize {
        self.intervals.as_slice().len()
    }

    /// Returns whether the set contains no key.
    pub fn is_empty(&self) -> bool {
        self.intervals.as_slice().is_empty()
    }

    /// Returns whether the set contains every key.
    pub fn is_all(&self) -> bool {
        matches!(self.intervals.as_slice(), [only] if only.is_open_below() && only.is_open_above())
    }

    /// Returns the encoded value, if the set is a single point.
    pub fn as_point(&self) -> Option<&[u8]> {
        match self.intervals.as_slice() {
            [only] => only.as_point(),
            _ => None,
        }
    }

    /// Returns whether every interval is a point.
    pub fn is_points(&self) -> bool {
        self.iter().all(|interval| interval.as_point().is_some())
    }

    /// Returns whether the set contains the keys that begin with the encoded value `encoded`.
    pub fn contains(&self, encoded: &[u8]) -> bool {
        let point = Interval::point(encoded);
        let intervals = self.intervals.as_slice();
        let after = intervals.partition_point(|interval| interval.high() <= point.low());
        intervals.get(after).is_some_and(|interval| interval.low() <= point.low() && point.high() <= interval.high())
    }
}

impl From<Interval> for IntervalSet {
    fn from(interval: Interval) -> Self {
        if interval.is_empty() { Self::empty() } else { Self { intervals: Intervals::One(interval) } }
    }
}
