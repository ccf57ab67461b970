//! bison-db's benchmarks with documents.

use std::path::Path;

use serde::Serialize;
use slate_bench_harness::{About, Result};

use crate::{Durability, Feature, bench::Bench};

mod finds;
mod opened;
mod payloads;
mod small;

/// A document store as these benchmarks use it.
///
/// An insert includes converting a [`Small`] into a document, as in bison-db's benchmarks.
pub trait Documents: Sized {
    /// Identifies a document.
    type Id: Clone;

    /// Returns the name, version and settings for reports.
    fn about() -> About;

    /// Returns the features that the store does not have.
    fn lacks() -> &'static [Feature];

    /// Opens or creates the store in a directory, with this durability.
    ///
    /// # Errors
    /// Fails with the store's errors.
    fn open(folder: &Path, durability: Durability) -> Result<Self>;

    /// Inserts one document.
    ///
    /// # Errors
    /// Fails with the store's errors.
    fn insert(&mut self, document: &Small) -> Result<Self::Id>;

    /// Inserts a document with one field, `key`.
    ///
    /// # Errors
    /// Fails with the store's errors.
    fn insert_key(&mut self, key: i64) -> Result<Self::Id>;

    /// Inserts documents with one field, `payload`, with the store's fastest method for many documents.
    ///
    /// # Errors
    /// Fails with the store's errors.
    fn insert_payloads(&mut self, payloads: &[Payload]) -> Result<Vec<Self::Id>>;

    /// Fetches a document and returns its field `id`.
    ///
    /// # Errors
    /// Fails with the store's errors, and if the document does not exist.
    fn get(&mut self, id: &Self::Id) -> Result<i64>;

    /// Fetches a document and returns the first byte of its payload.
    ///
    /// # Errors
    /// Fails with the store's errors, and if the document does not exist.
    fn get_payload(&mut self, id: &Self::Id) -> Result<u8>;

    /// Replaces a whole document.
    ///
    /// # Errors
    /// Fails with the store's errors, and if the document does not exist.
    fn update(&mut self, id: &Self::Id, document: &Small) -> Result<()>;

    /// Creates an index on a field.
    ///
    /// # Errors
    /// Fails with the store's errors.
    fn create_index(&mut self, field: &str) -> Result<()>;

    /// Counts the documents with this value in a field by their ids, without fetching the documents if the store
    /// supports that.
    ///
    /// # Errors
    /// Fails with the store's errors.
    fn find_ids(&mut self, field: &str, value: i64) -> Result<u64>;

    /// Sums a field over the documents with this value in it, fetching each of them.
    ///
    /// # Errors
    /// Fails with the store's errors.
    fn find_documents(&mut self, field: &str, value: i64) -> Result<i64>;

    /// Flushes all writes to the device.
    ///
    /// # Errors
    /// Fails with the store's errors.
    fn flush(&mut self) -> Result<()>;
}

/// bison-db's small document with five typed fields.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Small {
    /// The only field that differs between documents.
    pub id: i64,
    /// A string.
    pub name: &'static str,
    /// A boolean.
    pub active: bool,
    /// A float.
    pub score: f64,
    /// An array of two strings.
    pub tags: [&'static str; 2],
}

/// The content of a document's field `payload`.
pub type Payload = [u8; 64];

/// Measures the document tables. A table whose setup fails is reported, and the next one is measured.
pub(crate) fn run<D: Documents>(bench: &mut Bench) {
    let sections: [fn(&mut Bench) -> Result<()>; 3] = [small::run::<D>, finds::run::<D>, payloads::run::<D>];
    for section in sections {
        if let Err(error) = section(bench) {
            bench.failed("rest of the section", &error);
        }
    }
}
