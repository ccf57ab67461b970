//! Updates: what `update` and `findAndModify` change in a document, by its bytes.
//!
//! Operators are parsed into a tree by the paths they act on, as MongoDB keeps them: that finds conflicts between them,
//! and orders new fields (by name; array positions by number). Applying it walks the tree and the document side by side
//! and copies what no operator names as bytes, in runs.
//!
//! A new operator is a file in `operator` and a line in the table there.

mod apply;
mod array_filter;
mod context;
mod merge;
mod missing;
mod operator;
mod parse;
mod replace;
mod step;
mod storage;
mod touch;
mod tree;
mod upsert;

pub use context::{Context, Phase};
pub use merge::merge;
pub use parse::{Update, UsesPosition};
