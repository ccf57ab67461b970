//! Values that single keys were read with, for who reads them again: a lookup in a tree on disk, or in a large buffer, takes
//! several times as long as one here. It serves backends whose database this process alone writes to.
//!
//! Nobody has to be told of a commit. Each marks the keys that it writes with its number before anybody can see it, and a
//! value is handed to a snapshot only where no commit marked its key that either of the two may not have seen: the snapshot,
//! or the one that the value was read from. Both then saw the same commits of that key.

mod cache;
mod marks;
mod reader;
mod row;
#[cfg(test)]
pub(crate) mod trial;

pub(crate) use cache::RowCache;
#[cfg(feature = "rocksdb")]
pub(crate) use reader::Missed;
pub(crate) use reader::{Lookup, RowReader};
pub(crate) use row::Row;
