use crate::Keyspace;

/// What [`Store::check`](crate::Store::check) tells.
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
    /// No key that is affected is below or equal to this one.
    pub after: Option<Box<[u8]>>,
    /// No key that is affected is above this one.
    pub up_to: Option<Box<[u8]>>,
    /// What is damaged, for people.
    pub detail: String,
}
