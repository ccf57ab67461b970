//! Raw BSON, walked in place: borrowed values, documents and their elements, validation, and a writer.
//!
//! Bytes are validated once, where they enter ([`validate`]); after that the walker is total: on damaged bytes an
//! iteration ends early, and nothing panics.

mod bytes;
mod convert;
mod doc;
mod kind;
mod name;
mod small;
mod stored;
mod validate;
mod value;
mod write;

pub(crate) use bytes::{below, big_endian};
pub use bytes::{leading, same};
pub use convert::with_value;
pub use doc::{Doc, Element, Elements, Located};
pub use kind::Kind;
pub use name::FieldName;
pub use small::SmallBytes;
pub use stored::{Names, store, validate_and_store, validate_and_tabulate};
pub use validate::{MAX_DEPTH, validate};
pub use value::{OwnedValue, Value};
pub use write::{Checkpoint, Writer, with_id, write_one};
