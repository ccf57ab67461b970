/// An ordered map from bytes to bytes, named by a number.
///
/// A keyspace comes into existence by a write; before that it reads as empty. The caller chooses the numbers, and must
/// not reuse a dropped number ([`Store::drop_keyspace`](crate::Store::drop_keyspace)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Keyspace(pub u32);
