//! Ranges of key bytes: what a predicate asks of an index.
//!
//! A place in the key space is named by a prefix and a side: just before or just after every key that begins with it.
//! That survives concatenation (compound keys) and inversion (descending fields), which plain byte ranges do not.

use std::cmp::Ordering;

mod set;

pub use set::IntervalSet;

/// A place between keys. Places are ordered, and equal, as their bytes are ([`Place::to_bytes`]).
#[derive(Clone, Debug)]
pub struct Place {
    /// The bytes that the keys begin with: whole encoded values, and at the end perhaps the beginning of a text's. A
    /// beginning of another value's bytes is not one: 0xff may follow it.
    pub prefix: Vec<u8>,
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
    pub fn before(prefix: impl Into<Vec<u8>>) -> Self {
        Self { prefix: prefix.into(), side: Side::Before }
    }

    /// Above every key that begins with `prefix`.
    pub fn after(prefix: impl Into<Vec<u8>>) -> Self {
        Self { prefix: prefix.into(), side: Side::After }
    }

    /// The bytes at this place: no key lies between it and them. No byte that can follow a prefix is 0xff, which is what
    /// makes `After` expressible.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.clone().into_bytes()
    }

    /// As [`Place::to_bytes`].
    pub fn into_bytes(self) -> Vec<u8> {
        let mut bytes = self.prefix;
        if self.side == Side::After {
            bytes.push(0xff);
        }
        bytes
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
        Self { prefix: self.prefix.iter().map(|byte| !byte).collect(), side }
    }
}

impl Ord for Place {
    fn cmp(&self, other: &Self) -> Ordering {
        // Most places differ before the shorter prefix ends.
        let shared = self.prefix.len().min(other.prefix.len());
        match (self.prefix.get(..shared), other.prefix.get(..shared)) {
            (a, b) if a != b => a.cmp(&b),
            _ if self.prefix.len() == other.prefix.len() => self.side.cmp(&other.side),
            (_, _) => self.bytes().skip(shared).cmp(other.bytes().skip(shared)),
        }
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Where it begins.
    pub low: Place,
    /// Where it ends.
    pub high: Place,
}

impl Interval {
    /// From one place to another.
    pub fn new(low: Place, high: Place) -> Self {
        Self { low, high }
    }

    /// Every key.
    pub fn all() -> Self {
        Self { low: Place::before([]), high: Place::after([]) }
    }

    /// The keys that begin with one encoded value: those of the values equal to it.
    pub fn point(encoded: impl Into<Vec<u8>>) -> Self {
        let low = Place::before(encoded);
        Self { high: Place::after(low.prefix.clone()), low }
    }

    /// Whether no key lies in it.
    pub fn is_empty(&self) -> bool {
        self.low >= self.high
    }

    /// The encoded value, where the interval is the point of one.
    pub fn as_point(&self) -> Option<&[u8]> {
        let whole = self.low.side == Side::Before && self.high.side == Side::After && !self.low.prefix.is_empty();
        (whole && self.low.prefix == self.high.prefix && is_value(&self.low.prefix)).then_some(&self.low.prefix)
    }

    /// The same keys inverted, whose order runs the other way.
    #[must_use]
    pub fn inverted(&self) -> Self {
        Self { low: self.high.inverted(), high: self.low.inverted() }
    }

    /// What lies in both.
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Self {
        Self { low: self.low.clone().max(other.low.clone()), high: self.high.clone().min(other.high.clone()) }
    }
}

/// Whether the bytes are one whole encoded value, ascending or inverted: a bare tag or a string's beginning is not.
fn is_value(bytes: &[u8]) -> bool {
    [crate::key::Direction::Ascending, crate::key::Direction::Descending]
        .into_iter()
        .any(|direction| crate::key::skip(bytes, direction) == Some(bytes.len()))
}
