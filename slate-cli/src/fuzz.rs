//! What fuzzers call; not part of the API.

use std::io::Cursor;

use bson::{Bson, RawDocumentBuf};

use crate::{
    input::{self, InputOptions},
    json::{self, Dialect},
};

/// Returns the documents that can be read from a file in a format such as `csv`; none for an unknown format.
///
/// # Panics
/// If there are more records than bytes, because then reading may never end.
pub fn documents(format: &str, bytes: &[u8]) -> Vec<RawDocumentBuf> {
    let Some(format) = input::by_name(format) else { return Vec::new() };
    let Ok(records) = (format.open)(Box::new(Cursor::new(bytes.to_vec())), &InputOptions::default()) else {
        return Vec::new();
    };
    let (mut documents, mut count) = (Vec::new(), 0);
    for record in records.map_while(Result::ok) {
        count += 1;
        assert!(count <= bytes.len() + 1, "more records than bytes");
        documents.extend(record.document.ok());
    }
    documents
}

/// Reads a value as it is written in an argument: JSON, extended JSON, or as in MongoDB's shell. `None` for any other
/// text.
pub fn argument(text: &str) -> Option<Bson> {
    json::value(text, Dialect::QUERY).ok()
}
