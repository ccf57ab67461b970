//! Conversion between raw BSON and Rust types with serde.
//!
//! [`deserialize`] reads a document in place: it finds the fields of a struct through the field table of a stored
//! record, visits each element once, lends strings and bytes, skips ignored fields without decoding them, and allocates
//! only what the target owns. It relies on documents that were validated when they were stored. On damaged bytes it
//! fails or returns fewer fields, and never panics.
//!
//! Types convert as with the `bson` crate's `deserialize_from_slice` and `serialize_to_vec`, including the types of that
//! crate and its `serde_helpers`.

mod de;
mod error;
mod newtype;
mod readability;
mod ser;

pub use de::{deserialize, deserialize_document, deserialize_value};
pub use error::Error;
pub use ser::serialize;
