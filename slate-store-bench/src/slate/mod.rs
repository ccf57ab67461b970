//! Slate as a subject: its stores for keys and values, and a database on each for documents.

mod backend;
mod documents;
mod store;

#[cfg(feature = "redb")]
pub use backend::Redb;
#[cfg(feature = "rocksdb")]
pub use backend::RocksDb;
pub use backend::{Backend, Memory};
pub use documents::SlateDocuments;
pub use store::SlateStore;
