//! Properties of the RocksDB store only: opening, locks, formats, crashes, and conflict detection.
#![cfg(feature = "rocksdb")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "rocksdb/crashes.rs"]
mod crashes;
#[path = "rocksdb/opening.rs"]
mod opening;
#[path = "rocksdb/small_cache.rs"]
mod small_cache;
#[path = "rocksdb/tools.rs"]
mod tools;
#[path = "rocksdb/writers.rs"]
mod writers;
