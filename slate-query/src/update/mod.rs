//! Updates: the changes that `update` and `findAndModify` make to a document.
//!
//! As in MongoDB, operators are parsed into a tree by path. The tree detects conflicts and determines the order of new
//! fields (by name, array positions by number). Applying an update walks the tree and the document together, and copies
//! the bytes of everything else in runs.
//!
//! A new update operator is a file in `operator` and a line in the table there.

mod apply;
mod array_filter;
mod context;
mod description;
mod merge;
mod missing;
mod operator;
mod parse;
mod pipeline;
mod position;
mod replace;
mod scope;
mod step;
mod storage;
mod touch;
mod tree;
mod upsert;

pub use context::{Context, EmptyTimestamps, Phase};
pub use description::describe;
pub use merge::merge;
pub(crate) use operator::names as operator_names;
pub use parse::{Update, UsesPosition};
pub use storage::check_id;
