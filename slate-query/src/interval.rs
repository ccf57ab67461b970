//! Ranges of key bytes: what a predicate asks of an index.
//!
//! A place in the key space is named by a prefix and a side: just before or just after every key that begins with it.
//! That survives concatenation (compound keys) and inversion (descending fields), which plain byte ranges do not.

/// A place between keys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The bytes that the keys begin with: a whole encoded value, or a part of one.
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

    /// The bytes at this place: no key lies between it and them. No byte of value keys that can follow a prefix
    /// is 0xff, which is what makes `After` expressible.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.prefix.clone();
        if self.side == Side::After {
            bytes.push(0xff);
        }
        bytes
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
