//! Sorts: the order asked for, and the key bytes that bring documents into it.

mod key;
mod parse;

pub use key::Bound;
pub use parse::Sort;
