//! Keys: values encoded as bytes that sort as the values do. `docs/format.md` describes the encoding.
//!
//! An encoded value is self-delimiting and not a prefix of another. So the key of several values is their
//! concatenation, and inverting the bytes of a component reverses its order. Values that are equal in BSON's order have
//! the same key (int32 1 and double 1.0, a string and a symbol, null and a missing field). [`TypeBits`] store the
//! difference next to the key.

mod bits;
mod decode;
mod direction;
mod encode;
mod input;
mod number;
mod skip;
pub(crate) mod tag;

pub use bits::{TypeBits, TypeReader, join};
pub use decode::{Decoded, Overwrite, Presence, decode, decode_into};
pub use direction::Direction;
pub(crate) use encode::escape;
pub use encode::{encode, encode_directed, encode_typed};
pub use skip::skip;
