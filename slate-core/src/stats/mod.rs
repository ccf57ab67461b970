//! The sizes of collections and indexes: how many documents and entries, and how many bytes.
//!
//! ```text
//! collection    documents ─┬─ bytes            keys, field tables and documents, as the store receives them
//!                          └─ document_bytes   the documents alone, as BSON
//! each index    entries, bytes                 an index that is being built comes last, with what it has so far
//! ```
//!
//! The numbers are exact: every record and entry of one view is read, so the cost grows with the data. Nothing is
//! estimated from the planner's statistics (`catalog/statistics.rs`), which are a sample and may be old.
//! `estimated_document_count` and `size` of the API are the cheap alternatives: a count of keys, and the space of the
//! store.
//!
//! # What must stay true
//!
//! - **Logical bytes, not device bytes.** Compression, free pages and write buffers belong to the store, whose size is
//!   another call ([`Store::size`](slate_store::Store::size)). The same data therefore has the same sizes on
//!   every store.
//! - **One view.** All numbers belong to one commit, while writers continue.
//! - **Interruptible.** Reading a large collection takes as long as a scan, so every entry ticks the call's interrupt.
//!
//! [`sizes`] has MongoDB's names for these numbers. `$collStats`, `collStats` and `dbStats` all use it, so their
//! results agree.

mod collection;
pub(crate) mod sizes;

pub(crate) use collection::stats;
pub use collection::{ChangeLogStats, CollectionStats, DatabaseStats, IndexStats};
