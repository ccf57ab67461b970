//! Messages on standard error.

use std::{
    fmt,
    io::{self, Write},
};

/// Writes a line to standard error. Ignores a failure, because the reader may have closed standard error.
macro_rules! message {
    ($($text:tt)*) => { $crate::message::write(format_args!($($text)*)) };
}
pub(crate) use message;

/// Writes a line, as [`message!`] does.
pub(crate) fn write(text: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}
