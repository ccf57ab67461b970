//! Key patterns of indexes, and the keys of a document in an index.

mod expand;
mod keys;
pub(crate) mod parse;

pub use crate::key::Direction;
pub(crate) use expand::{Emit, MAX_FIELDS, Positions, Slot, expand, follow};
pub use keys::Keys;
pub use parse::KeyPattern;
