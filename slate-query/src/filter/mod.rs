//! Filters: which documents a question asks for.
//!
//! A filter is parsed once into a tree of [`Node`]s whose leaves are operators on paths, and then asked of raw
//! documents: whether they match, at which array position, and what it says of an index's keys.

mod bounds;
mod conjunction;
mod display;
mod element;
mod equalities;
mod field;
mod implication;
mod node;
mod operator;
mod operators;
mod parse;
mod partial;
mod pattern;
mod position;
mod single_equality;
mod terms;
mod whole;

pub use element::ElementFilter;
pub use node::Node;
pub use single_equality::SingleEquality;
pub use terms::{Exactness, Term};
pub use whole::Filter;
