//! Sorts, and the keys by which documents are sorted.

mod array;
mod key;
mod parse;

pub(crate) use array::ArraySort;
pub use key::Bound;
pub use parse::Sort;
