//! Messages on standard error.

use std::{
    fmt,
    io::{self, Write},
};

/// Writes a line to standard error. Whoever read it may have gone: that ends nothing.
macro_rules! message {
    ($($text:tt)*) => { $crate::message::write(format_args!($($text)*)) };
}
pub(crate) use message;

/// Writes a line, as [`message!`] does.
pub(crate) fn write(text: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}
