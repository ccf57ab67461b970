//! Filters: which documents a question asks for.
//!
//! A filter is parsed once into a tree of [`Node`]s whose leaves are operators on paths, and then asked of raw
//! documents: whether they match, at which array position, and what it says of an index's keys.

mod element;
mod node;
mod whole;

pub use element::ElementFilter;
pub use node::{Exactness, Node, Term};
pub use whole::Filter;
