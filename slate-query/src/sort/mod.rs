//! Sorts, and the keys by which documents are sorted.

mod key;
mod parse;

pub use key::Bound;
pub use parse::Sort;
