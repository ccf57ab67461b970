//! Reads documents as people and programs write them: JSON, MongoDB's extended JSON versions 1 and 2, and the literals of
//! MongoDB's shell (`ISODate("…")`, `ObjectId("…")`, `NumberLong(…)`, unquoted names, single quotes, trailing commas,
//! comments, `/regular expressions/`).
//!
//! `Window` holds the part of a text that is being read, `Parser` reads one value from it, `Documents` reads one document
//! after the other and continues after unreadable text. A value is never changed without notice: integers beyond 64 bits
//! and repeated field names are faults.

mod date;
mod documents;
mod extended;
mod literal;
mod nesting;
mod number;
mod parser;
mod string;
mod window;

pub(crate) use date::{millis, millis_at};
pub(crate) use documents::Documents;
pub(crate) use number::BigIntegers;
pub(crate) use parser::{Dialect, Parser, Regexes};
pub(crate) use window::{Position, Window};

use bson::{Bson, Document};

/// Reads a text that is exactly one value.
///
/// # Errors
/// The error says what is wrong and, unless the text is short, where.
pub(crate) fn value(text: &str, dialect: Dialect) -> Result<Bson, String> {
    let mut window = Window::of_text(text);
    let mut parser = Parser::new(&mut window, dialect);
    let read = parser.value().and_then(|value| parser.end().map(|()| value));
    read.map_err(|fault| format!("{} ({})", fault.why, window.position(fault.at)))
}

/// Reads a text that is exactly one document.
///
/// # Errors
/// Fails as [`value`] does, or if the text is another value.
pub(crate) fn document(text: &str, dialect: Dialect) -> Result<Document, String> {
    match value(text, dialect)? {
        Bson::Document(document) => Ok(document),
        _ => Err("expected a document such as { name: \"Ada\" }".into()),
    }
}
