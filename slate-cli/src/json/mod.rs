//! Reads documents as people and programs write them: JSON, MongoDB's extended JSON versions 1 and 2, and the literals of
//! MongoDB's shell (`ISODate("…")`, `ObjectId("…")`, `NumberLong(…)`, unquoted names, single quotes, trailing commas,
//! comments, `/regular expressions/`).
//!
//! `Window` holds the part of a text that is being read, `Parser` reads one value from it, `JsonDocuments` reads one document
//! after the other and continues after unreadable text. A value is never changed without notice: repeated field names are
//! faults, and integers beyond 64 bits unless [`BigIntegers`] allows them.

mod date;
mod documents;
mod extended;
mod literal;
mod nesting;
mod number;
mod parser;
mod string;
mod window;

pub(crate) use date::{floor_millis, nanos, nanos_at, whole_millis};
pub(crate) use documents::JsonDocuments;
pub(crate) use number::BigIntegers;
use parser::Fault;
pub(crate) use parser::{Dialect, Parser, Regexes};
pub(crate) use window::{Position, Window};

use bson::{Bson, Document};

use crate::message::abridged;

/// Reads a text that is exactly one value.
///
/// # Errors
/// Fails if the text is not one value; the message ends with the position.
pub(crate) fn value(text: &str, dialect: Dialect) -> Result<Bson, String> {
    read(text, dialect).map_err(|(fault, position)| format!("{} ({position})", fault.why))
}

fn read(text: &str, dialect: Dialect) -> Result<Bson, (Fault, Position)> {
    let mut window = Window::of_text(text);
    let mut parser = Parser::new(&mut window, dialect);
    let read = parser.value().and_then(|value| parser.end().map(|()| value));
    read.map_err(|fault| {
        let position = window.position(fault.at);
        (fault, position)
    })
}

/// Longest part of a line that is shown before and after a fault, in characters.
const SHOWN_BEFORE: usize = 40;
const SHOWN_AFTER: usize = 30;

/// Longest description of a fault, in characters: a description can repeat a value of any length.
const LONGEST_FAULT: usize = 200;

/// Reads an argument that is exactly one value.
///
/// # Errors
/// Fails if the text is not one value. The message ends with the position, a part of the line, and a mark below it.
pub(crate) fn argument(text: &str, dialect: Dialect) -> Result<Bson, String> {
    read(text, dialect).map_err(|(fault, position)| {
        let why = abridged(&fault.why, LONGEST_FAULT);
        format!("{why} ({position})\n{}", place(text, fault.at))
    })
}

/// Returns the part of the text around an offset, and below it a mark at the offset.
fn place(text: &str, at: usize) -> String {
    let at = (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    let (before, after) = text.split_at(at);
    let before = before.rsplit('\n').next().unwrap_or_default();
    let after = after.split('\n').next().unwrap_or_default();
    let cut = before.char_indices().rev().nth(SHOWN_BEFORE - 1).map_or(0, |(at, _)| at);
    let end = after.char_indices().nth(SHOWN_AFTER).map_or(after.len(), |(at, _)| at);
    let plain = |part: &str| part.replace(char::is_control, " ");
    let head = format!("{}{}", if cut > 0 { "…" } else { "" }, plain(before.get(cut..).unwrap_or_default()));
    let tail = format!("{}{}", plain(after.get(..end).unwrap_or_default()), if end < after.len() { "…" } else { "" });
    format!("  {head}{tail}\n  {}^", " ".repeat(console::measure_text_width(&head)))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_of_an_argument_is_shown_at_its_place() {
        let why = |text: &str| argument(text, Dialect::QUERY).unwrap_err();
        assert_eq!(why("{ a: "), "expected a value, found the end (line 1, column 6)\n  { a: \n       ^");
        assert_eq!(
            why("{ a: 1,\n\tb: oops }"),
            "unknown value oops: strings are written in quotes (line 2, column 5)\n   b: oops }\n      ^"
        );
        assert_eq!(why(""), "expected a value, found the end (line 1, column 1)\n  \n  ^");
        // Wide characters take two columns of a terminal.
        assert!(why("{ 漢字: }").ends_with("\n  { 漢字: }\n          ^"), "{}", why("{ 漢字: }"));
        let long = format!("{{ a: '{}', b: ?, c: '{}' }}", "x".repeat(1_000_000), "é".repeat(1_000_000));
        let shown = why(&long);
        assert!(shown.starts_with("expected a value, found '?' (line 1, column 1000013)\n  …xxx"), "{shown}");
        assert!(shown.chars().count() < 250, "{shown}");
        assert!(why(&format!("{{ a: {} }}", "x".repeat(1_000_000))).chars().count() < 500);
    }
}
