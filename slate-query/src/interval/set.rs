use super::{Interval, Place};

/// A set of keys, as intervals: sorted, disjoint, none empty, none touching the next.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct IntervalSet {
    intervals: Vec<Interval>,
}

impl IntervalSet {
    /// No key.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Every key.
    pub fn all() -> Self {
        Self { intervals: vec![Interval::all()] }
    }

    /// What lies in any of `intervals`, which may come in any order, overlap and be empty.
    pub fn from(mut intervals: Vec<Interval>) -> Self {
        intervals.retain(|interval| !interval.is_empty());
        intervals.sort_by(|a, b| a.low.cmp(&b.low));
        let mut merged: Vec<Interval> = Vec::with_capacity(intervals.len());
        for interval in intervals {
            match merged.last_mut() {
                Some(last) if interval.low <= last.high => {
                    if interval.high > last.high {
                        last.high = interval.high;
                    }
                }
                _ => merged.push(interval),
            }
        }
        Self { intervals: merged }
    }

    /// What lies in either.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self::from(self.intervals.iter().chain(&other.intervals).cloned().collect())
    }

    /// What lies in both.
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Self {
        let (mut left, mut right) = (self.intervals.iter().peekable(), other.intervals.iter().peekable());
        let mut intervals = Vec::new();
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            let both = a.intersect(b);
            if !both.is_empty() {
                intervals.push(both);
            }
            if a.high <= b.high {
                left.next();
            } else {
                right.next();
            }
        }
        Self { intervals }
    }

    /// What lies outside.
    #[must_use]
    pub fn complement(&self) -> Self {
        let mut low = Place::before([]);
        let mut intervals = Vec::with_capacity(self.intervals.len() + 1);
        for interval in &self.intervals {
            intervals.push(Interval::new(low, interval.low.clone()));
            low = interval.high.clone();
        }
        intervals.push(Interval::new(low, Place::after([])));
        intervals.retain(|interval| !interval.is_empty());
        Self { intervals }
    }

    /// The same keys inverted, as a descending field holds them.
    #[must_use]
    pub fn inverted(&self) -> Self {
        Self { intervals: self.intervals.iter().rev().map(Interval::inverted).collect() }
    }

    /// The intervals, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Interval> + ExactSizeIterator {
        self.intervals.iter()
    }

    /// How many intervals there are.
    pub fn len(&self) -> usize {
        self.intervals.len()
    }

    /// Whether no key lies in it.
    pub fn is_empty(&self) -> bool {
        self.intervals.is_empty()
    }

    /// Whether every key lies in it.
    pub fn is_all(&self) -> bool {
        matches!(self.intervals.as_slice(), [only] if *only == Interval::all())
    }

    /// The encoded value, where the set holds exactly the keys of one.
    pub fn as_point(&self) -> Option<&[u8]> {
        match self.intervals.as_slice() {
            [only] => only.as_point(),
            _ => None,
        }
    }

    /// Whether every interval is the point of one value.
    pub fn is_points(&self) -> bool {
        self.intervals.iter().all(|interval| interval.as_point().is_some())
    }

    /// Whether a key that begins with the encoded value `encoded` lies in it.
    pub fn contains(&self, encoded: &[u8]) -> bool {
        let point = Interval::point(encoded);
        let after = self.intervals.partition_point(|interval| interval.high <= point.low);
        self.intervals.get(after).is_some_and(|interval| interval.low <= point.low && point.high <= interval.high)
    }
}

impl From<Interval> for IntervalSet {
    fn from(interval: Interval) -> Self {
        Self::from(vec![interval])
    }
}
