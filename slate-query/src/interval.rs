//! Ranges of key bytes: what a predicate asks of an index.
//!
//! A place in the key space is named by a prefix and a side: just before or just after every key that begins with it.
//! That survives concatenation (compound keys) and inversion (descending fields), which plain byte ranges do not.

use std::cmp::Ordering;

use crate::raw::SmallBytes;

mod set;

pub use set::IntervalSet;

/// A place between keys. Places are ordered, and equal, as their bytes are ([`Place::to_bytes`]).
#[derive(Clone, Debug)]
pub struct Place {
    /// The bytes that the keys begin with: whole encoded values, and at the end perhaps the beginning of a text's. A
    /// beginning of another value's bytes is not one: 0xff may follow it.
    pub prefix: SmallBytes,
    /// On which side of them.
    pub side: Side,
}

/// A side of the keys that begin with a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Below all of them.
    Before,
    /// Above all of them.
    After,
}

impl Place {
    /// Below every key that begins with `prefix`.
    pub fn before(prefix: impl Into<SmallBytes>) -> Self {
        Self { prefix: prefix.into(), side: Side::Before }
    }

    /// Above every key that begins with `prefix`.
    pub fn after(prefix: impl Into<SmallBytes>) -> Self {
        Self { prefix: prefix.into(), side: Side::After }
    }

    /// The bytes at this place: no key lies between it and them. No byte that can follow a prefix is 0xff, which is what
    /// makes `After` expressible.
    pub fn to_bytes(&self) -> SmallBytes {
        self.to_bytes_behind(&[])
    }

    /// The bytes at this place among the keys that begin with the values `before`.
    pub fn to_bytes_behind(&self, before: &[u8]) -> SmallBytes {
        match self.side {
            Side::Before if before.is_empty() => self.prefix.clone(),
            Side::Before => SmallBytes::concat(&[before, &self.prefix]),
            Side::After => SmallBytes::concat(&[before, &self.prefix, &[0xff]]),
        }
    }

    fn bytes(&self) -> impl Iterator<Item = u8> {
        self.prefix.iter().copied().chain((self.side == Side::After).then_some(0xff))
    }

    /// The same place among inverted keys, whose order runs the other way.
    #[must_use]
    pub fn inverted(&self) -> Self {
        let side = match self.side {
            Side::Before => Side::After,
            Side::After => Side::Before,
        };
        let inverted: Vec<u8> = self.prefix.iter().map(|byte| !byte).collect();
        Self { prefix: inverted.into(), side }
    }
}

impl Ord for Place {
    fn cmp(&self, other: &Self) -> Ordering {
        // Most places differ before the shorter prefix ends.
        let shared = self.prefix.len().min(other.prefix.len());
        self.prefix.get(..shared).cmp(&other.prefix.get(..shared)).then_with(|| {
            if self.prefix.len() == other.prefix.len() {
                self.side.cmp(&other.side)
            } else {
                self.bytes().skip(shared).cmp(other.bytes().skip(shared))
            }
        })
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Place {}

/// The keys between two places; empty where `low >= high`.
#[derive(Clone, Debug)]
pub struct Interval {
    low: Place,
    high: Place,
    shape: Shape,
}

/// What is known of an interval as a whole: it is asked for often, and telling takes a look at the encoded value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// The keys that begin with one encoded value.
    Point,
    Range,
}

impl Interval {
    /// From one place to another.
    pub fn new(low: Place, high: Place) -> Self {
        let whole = low.side == Side::Before && high.side == Side::After && !low.prefix.is_empty();
        let shape =
            if whole && low.prefix == high.prefix && is_value(&low.prefix) { Shape::Point } else { Shape::Range };
        Self { low, high, shape }
    }

    /// Every key.
    pub fn all() -> Self {
        Self { low: Place::before([]), high: Place::after([]), shape: Shape::Range }
    }

    /// The keys that begin with one encoded value: those of the values equal to it.
    pub fn point(encoded: impl Into<SmallBytes>) -> Self {
        let low = Place::before(encoded);
        Self { high: Place::after(low.prefix.clone()), low, shape: Shape::Point }
    }

    /// Where it begins.
    pub fn low(&self) -> &Place {
        &self.low
    }

    /// Where it ends.
    pub fn high(&self) -> &Place {
        &self.high
    }

    /// Whether no key lies in it.
    pub fn is_empty(&self) -> bool {
        self.shape == Shape::Range && self.low >= self.high
    }

    /// Whether no key lies below it.
    pub fn is_open_below(&self) -> bool {
        self.low.prefix.is_empty() && self.low.side == Side::Before
    }

    /// Whether no key lies above it.
    pub fn is_open_above(&self) -> bool {
        self.high.prefix.is_empty() && self.high.side == Side::After
    }

    /// The encoded value, where the interval is the point of one.
    pub fn as_point(&self) -> Option<&[u8]> {
        (self.shape == Shape::Point).then_some(&*self.low.prefix)
    }

    /// The same keys inverted, whose order runs the other way.
    #[must_use]
    pub fn inverted(&self) -> Self {
        Self { low: self.high.inverted(), high: self.low.inverted(), shape: self.shape }
    }

    /// What lies in both.
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Self {
        let low = if self.low >= other.low { &self.low } else { &other.low };
        let high = if self.high <= other.high { &self.high } else { &other.high };
        Self::new(low.clone(), high.clone())
    }
}

/// Intervals are equal as their places are.
impl PartialEq for Interval {
    fn eq(&self, other: &Self) -> bool {
        self.low == other.low && self.high == other.high
    }
}

impl Eq for Interval {}

/// Whether the bytes are one whole encoded value, ascending or inverted: a bare tag or a string's beginning is not.
fn is_value(bytes: &[u8]) -> bool {
    [crate::key::Direction::Ascending, crate::key::Direction::Descending]
        .into_iter()
        .any(|direction| crate::key::skip(bytes, direction) == Some(bytes.len()))
}
