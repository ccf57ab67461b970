//! Ranges of index keys.
//!
//! A bound is a prefix and a side: just before or just after all keys with that prefix. Unlike plain byte ranges,
//! bounds can be concatenated (compound keys) and inverted (descending fields).

use std::cmp::Ordering;

use crate::raw::SmallBytes;

mod bracket;
mod set;

pub use bracket::{above_nan, bracket_interval, nan_interval, prefix_interval};
pub use set::IntervalSet;

/// A bound between keys. Bounds compare as their bytes do; see [`Place::to_bytes`].
#[derive(Clone, Debug)]
pub struct Place {
    /// The common prefix of the keys: complete encoded values, and possibly the beginning of a text at the end. The
    /// beginning of any other value is not allowed, because 0xff may follow it.
    pub prefix: SmallBytes,
    /// Whether the bound is below or above all of these keys.
    pub side: Side,
}

/// A side of the keys with a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Below all keys with the prefix.
    Before,
    /// Above all keys with the prefix.
    After,
}

impl Place {
    /// Returns the bound below every key that begins with `prefix`.
    pub fn before(prefix: impl Into<SmallBytes>) -> Self {
        Self { prefix: prefix.into(), side: Side::Before }
    }

    /// Returns the bound above every key that begins with `prefix`.
    pub fn after(prefix: impl Into<SmallBytes>) -> Self {
        Self { prefix: prefix.into(), side: Side::After }
    }

    /// Returns the bound as bytes, for keys that begin with the encoded values `before`. No key is between the bound and the
    /// bytes: `After` appends 0xff, which never follows a prefix.
    pub fn to_bytes(&self, before: &[u8]) -> SmallBytes {
        match self.side {
            Side::Before if before.is_empty() => self.prefix.clone(),
            Side::Before => SmallBytes::concat(&[before, &self.prefix]),
            Side::After => SmallBytes::concat(&[before, &self.prefix, &[0xff]]),
        }
    }

    fn bytes(&self) -> impl Iterator<Item = u8> {
        self.prefix.iter().copied().chain((self.side == Side::After).then_some(0xff))
    }

    /// Returns the same bound among inverted keys, whose order is reversed.
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
        // Most bounds differ before the shorter prefix ends.
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

/// The keys between two bounds; empty if `low >= high`.
#[derive(Clone, Debug)]
pub struct Interval {
    low: Place,
    high: Place,
    shape: Shape,
}

/// Whether an interval is a point. Stored because it is expensive to compute from the encoded value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// The keys that begin with one encoded value.
    Point,
    Range,
}

impl Interval {
    /// Creates the interval between two bounds. It is a point if it contains exactly the keys that begin with one encoded value.
    pub fn new(low: Place, high: Place) -> Self {
        let whole = low.side == Side::Before && high.side == Side::After && !low.prefix.is_empty();
        let shape =
            if whole && low.prefix == high.prefix && is_value(&low.prefix) { Shape::Point } else { Shape::Range };
        Self { low, high, shape }
    }

    /// Creates the interval that contains every key.
    pub fn all() -> Self {
        Self { low: Place::before([]), high: Place::after([]), shape: Shape::Range }
    }

    /// Returns the keys that begin with one encoded value, that is, of all values equal to it.
    pub fn point(encoded: impl Into<SmallBytes>) -> Self {
        let low = Place::before(encoded);
        Self { high: Place::after(low.prefix.clone()), low, shape: Shape::Point }
    }

    /// Returns the lower bound.
    pub fn low(&self) -> &Place {
        &self.low
    }

    /// Returns the upper bound.
    pub fn high(&self) -> &Place {
        &self.high
    }

    /// Returns whether the interval contains no key.
    pub fn is_empty(&self) -> bool {
        self.shape == Shape::Range && self.low >= self.high
    }

    /// Returns whether the interval has no lower bound.
    pub fn is_open_below(&self) -> bool {
        self.low.prefix.is_empty() && self.low.side == Side::Before
    }

    /// Returns whether the interval has no upper bound.
    pub fn is_open_above(&self) -> bool {
        self.high.prefix.is_empty() && self.high.side == Side::After
    }

    /// Returns the encoded value, if the interval is a point.
    pub fn as_point(&self) -> Option<&[u8]> {
        (self.shape == Shape::Point).then_some(&*self.low.prefix)
    }

    /// Returns the same keys inverted, in reversed order.
    #[must_use]
    pub fn inverted(&self) -> Self {
        Self { low: self.high.inverted(), high: self.low.inverted(), shape: self.shape }
    }

    /// Returns the intersection.
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Self {
        let low = if self.low >= other.low { &self.low } else { &other.low };
        let high = if self.high <= other.high { &self.high } else { &other.high };
        Self::new(low.clone(), high.clone())
    }
}

/// Intervals are equal if their bounds are.
impl PartialEq for Interval {
    fn eq(&self, other: &Self) -> bool {
        self.low == other.low && self.high == other.high
    }
}

impl Eq for Interval {}

/// Returns whether the bytes are one complete encoded value, of an ascending or a descending field. A type tag alone
/// and the beginning of a string are not.
fn is_value(bytes: &[u8]) -> bool {
    [crate::key::Direction::Ascending, crate::key::Direction::Descending]
        .into_iter()
        .any(|direction| crate::key::skip(bytes, direction) == Some(bytes.len()))
}
