use std::io;

use bson::{Bson, Document, RawDocument};

/// Converts a stored document.
///
/// # Errors
/// Fails if it is damaged.
pub(super) fn document(raw: &RawDocument) -> io::Result<Document> {
    Document::try_from(raw).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// A value as relaxed extended JSON, on one line.
pub(crate) fn relaxed(value: Bson) -> String {
    value.into_relaxed_extjson().to_string()
}

/// A value as canonical extended JSON, on one line: every type is kept.
pub(crate) fn canonical(value: Bson) -> String {
    value.into_canonical_extjson().to_string()
}

/// A number of things, for people.
pub(crate) fn counted(number: u64, one: &str, more: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { more })
}

/// A number of documents, for people.
pub(crate) fn documents(number: u64) -> String {
    counted(number, "document", "documents")
}
