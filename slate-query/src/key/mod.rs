//! Key bytes: values as bytes that sort, byte by byte, as the values do. `docs/format.md` describes them.
//!
//! An encoded value is self-delimiting and no prefix of another, so that keys of several values are their
//! concatenation, and inverting a component's bytes turns its order around. What the order does not tell apart (int32 1
//! and double 1.0, a string and a symbol, null and a missing field) the bytes do not either: [`TypeBits`] keep it
//! beside them.

mod bits;
mod bracket;
mod decode;
mod direction;
mod encode;
mod input;
mod number;
mod skip;
mod tag;

pub use bits::{TypeBits, TypeReader, join};
pub use bracket::{above_nan, bracket_interval, nan_interval, prefix_interval};
pub use decode::{Decoded, Overwrite, Presence, decode, decode_into};
pub use direction::Direction;
pub use encode::{encode, encode_directed, encode_typed};
pub use skip::skip;
