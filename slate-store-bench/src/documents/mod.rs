//! Documents, as bison-db's own benches have them: what a collection of Slate's is measured beside.

use std::path::Path;

use serde::Serialize;
use slate_bench_harness::{About, Result};

use crate::{Durability, Feature, bench::Bench};

mod finds;
mod opened;
mod payloads;
mod small;

/// A document store, as bison-db's tables see one.
///
/// What it takes to make a document of a [`Small`] is measured with each insertion, as it is in bison-db's benches.
pub trait Documents: Sized {
    /// What a document is found by again.
    type Id: Clone;

    /// What reports say was measured.
    fn about() -> About;

    /// What the store does not offer.
    fn lacks() -> &'static [Feature];

    /// Opens the store in a folder of its own, or makes it there; its writes are as durable as that.
    ///
    /// # Errors
    /// As the store fails.
    fn open(folder: &Path, durability: Durability) -> Result<Self>;

    /// Inserts one document.
    ///
    /// # Errors
    /// As the store fails.
    fn insert(&mut self, document: &Small) -> Result<Self::Id>;

    /// Inserts a document of one field, `key`.
    ///
    /// # Errors
    /// As the store fails.
    fn insert_key(&mut self, key: i64) -> Result<Self::Id>;

    /// Inserts documents of one field, `payload`, by the quickest way the store has for many.
    ///
    /// # Errors
    /// As the store fails.
    fn insert_payloads(&mut self, payloads: &[Payload]) -> Result<Vec<Self::Id>>;

    /// Fetches a document and gives its field `id`.
    ///
    /// # Errors
    /// As the store fails; where there is no such document.
    fn get(&mut self, id: &Self::Id) -> Result<i64>;

    /// Fetches a document and gives the first byte of its payload.
    ///
    /// # Errors
    /// As the store fails; where there is no such document.
    fn get_payload(&mut self, id: &Self::Id) -> Result<u8>;

    /// Replaces a document whole.
    ///
    /// # Errors
    /// As the store fails; where there is no such document.
    fn update(&mut self, id: &Self::Id, document: &Small) -> Result<()>;

    /// Indexes a field.
    ///
    /// # Errors
    /// As the store fails.
    fn create_index(&mut self, field: &str) -> Result<()>;

    /// How many documents have that value in that field, by their ids: the documents are not fetched where the store can
    /// do without.
    ///
    /// # Errors
    /// As the store fails.
    fn find_ids(&mut self, field: &str, value: i64) -> Result<u64>;

    /// The sum of that field over the documents that have that value in it, each of them fetched.
    ///
    /// # Errors
    /// As the store fails.
    fn find_documents(&mut self, field: &str, value: i64) -> Result<i64>;

    /// Puts all that was written on the device.
    ///
    /// # Errors
    /// As the store fails.
    fn flush(&mut self) -> Result<()>;
}

/// bison-db's small document: five typed fields.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Small {
    /// The only one that differs between documents.
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

/// 64 bytes.
pub type Payload = [u8; 64];

/// Measures documents, table by table. One that cannot be set up is reported, and the others are measured.
pub(crate) fn run<D: Documents>(bench: &mut Bench) {
    let sections: [fn(&mut Bench) -> Result<()>; 3] = [small::run::<D>, finds::run::<D>, payloads::run::<D>];
    for section in sections {
        if let Err(error) = section(bench) {
            bench.failed("the rest of the section", &error);
        }
    }
}
