//! Updates: what `update` and `findAndModify` change in a document, by its bytes.

mod context;
mod parse;

pub use context::{Context, Phase};
pub use parse::{Update, UsesPosition, merge};
