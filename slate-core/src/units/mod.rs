//! Byte sizes and durations with units, as in configuration files: `"256MiB"`, `"5s"`.

pub(crate) mod bytes;
pub(crate) mod duration;
mod parse;
