//! Raw BSON, read in place: borrowed values, documents and their elements, validation, and a writer.
//!
//! Bytes are validated once, where they enter ([`validate()`]). Reading never panics: on damaged bytes an iteration ends
//! early.
//!
//! [`Value`] takes the place of bson's [`RawBsonRef`](bson::RawBsonRef), because filters, keys and updates work on the
//! encoded bytes: a `Value` is a type and a slice, decodes nothing until an accessor is called, and is
//! compared and copied as bytes. A `RawBsonRef` decodes and checks each value where a document is iterated, and cannot
//! represent a value apart from a document, for instance in an index key. Both convert into each other:
//! [`RawBson`](bson::RawBson) from `Value`, and [`OwnedValue`] from `RawBsonRef`.

mod bytes;
mod convert;
mod digits;
mod doc;
mod json;
mod kind;
mod name;
mod shell;
mod small;
mod stored;
mod validate;
mod value;
mod write;

pub(crate) use bytes::{below, big_endian};
pub use bytes::{leading, same};
pub use convert::with_value;
pub(crate) use digits::digits;
pub(crate) use doc::terminator;
pub use doc::{Doc, Element, Elements, Located};
pub use kind::Kind;
pub use name::FieldName;
pub use small::SmallBytes;
pub(crate) use stored::{Marks, mark, store_fields};
pub use stored::{Names, store, validate_and_store, validate_and_tabulate};
pub use validate::{MAX_DEPTH, too_deep, validate, validate_depth};
pub use value::{OwnedValue, Value};
pub use write::{Checkpoint, Writer, with_id, write_one};
