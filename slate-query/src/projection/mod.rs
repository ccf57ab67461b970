//! Projections: the parts of a document that a find returns.
//!
//! A projection document is parsed into a tree of its paths. The tree is converted into the passes that make one
//! document out of another: first its shape (fields included or excluded), then the changes to single arrays (`$slice`,
//! the positional `$`), in the order in which they are written, then the computed fields. Bytes are copied, never
//! decoded.

mod add_fields;
mod additions;
mod elem_match;
mod output;
mod parse;
mod positional;
mod shape;
mod slice;
mod tree;
mod whole;

pub use whole::Projection;
