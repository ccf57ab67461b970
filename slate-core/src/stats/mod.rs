//! The sizes of collections and indexes, counted by reading them: [`stats`] for one collection, [`sizes`] in MongoDB's form.

mod collection;
pub(crate) mod sizes;

pub(crate) use collection::stats;
pub use collection::{CollectionStats, DatabaseStats, IndexStats};
