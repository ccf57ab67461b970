/// An ordered map of bytes to bytes, named by number.
///
/// A keyspace exists by being written to; one that nobody wrote to reads as empty. Numbers are the caller's to give out,
/// and a number that was dropped ([`Store::drop_keyspace`](crate::Store::drop_keyspace)) is never given out again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Keyspace(pub u32);
