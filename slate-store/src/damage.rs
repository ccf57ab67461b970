use crate::Keyspace;

/// A report of [`Store::check`](crate::Store::check).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Checked {
    /// The number of bytes that were read so far.
    Bytes(u64),
    /// A part of the store is damaged.
    Damaged(Damage),
}

/// A part of a store whose checksum is wrong, or that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The keyspace; `None` for the store's own structures.
    pub keyspace: Option<Keyspace>,
    /// All affected keys are greater than this one; `None` if there is no such limit.
    pub after: Option<Box<[u8]>>,
    /// No affected key is greater than this one; `None` if there is no such limit.
    pub up_to: Option<Box<[u8]>>,
    /// A description of the damage for people.
    pub detail: String,
}
