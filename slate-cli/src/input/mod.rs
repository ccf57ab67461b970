//! The formats that `import` reads. A format turns bytes into records. A bad record is reported with its place, and the
//! others are imported.
//!
//! A new format is one file and one line in [`FORMATS`].

mod bson_dump;
mod csv;
mod files;
mod infer;
mod json;
mod metadata;
mod source;
mod stdin;
mod unicode;
mod zstd;

use std::{
    fmt,
    io::{self, BufRead},
};

use ::bson::RawDocumentBuf;

pub(crate) use csv::is_path;
pub(crate) use files::{InputFile, encoded, find};
pub(crate) use infer::{infer, oid_text};
pub(crate) use metadata::{Metadata, SUFFIX as METADATA_SUFFIX, unversioned};
pub(crate) use source::{Source, uncompressed_name};
pub(crate) use stdin::Stdin;

use crate::json::{BigIntegers, Position};

/// A format that can be read.
pub(crate) struct Format {
    pub(crate) name: &'static str,
    /// Endings of file names, without those of compression.
    pub(crate) extensions: &'static [&'static str],
    pub(crate) open: fn(Box<dyn BufRead>, &InputOptions) -> io::Result<Records>,
}

/// The formats by name.
pub(crate) static FORMATS: &[Format] = &[
    Format { name: "json", extensions: &["json", "jsonl", "ndjson"], open: json::open },
    Format { name: "csv", extensions: &["csv"], open: csv::open_csv },
    Format { name: "tsv", extensions: &["tsv", "tab"], open: csv::open_tsv },
    Format { name: "bson", extensions: &["bson"], open: bson_dump::open },
];

/// Returns the names of the formats.
pub(crate) fn names() -> Vec<&'static str> {
    FORMATS.iter().map(|format| format.name).collect()
}

/// Returns the format with this name.
pub(crate) fn by_name(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

/// Returns the format of file names with this extension.
pub(crate) fn by_extension(extension: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.extensions.iter().any(|other| other.eq_ignore_ascii_case(extension)))
}

/// Choices of the user about how records are read.
#[derive(Clone, Debug, Default)]
pub(crate) struct InputOptions {
    pub(crate) big_integers: BigIntegers,
    /// The columns of a table without a header.
    pub(crate) columns: Option<Vec<String>>,
    /// The column delimiter, instead of the format's.
    pub(crate) delimiter: Option<u8>,
}

/// Where a record is in its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Text(Position),
    /// Lines of a row in a table, counted from 1.
    Lines {
        first: u64,
        last: u64,
    },
    /// Byte in a binary file, counted from 0, and the number of the document, counted from 1.
    Byte {
        offset: u64,
        number: u64,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(position) => write!(f, "{position}"),
            Self::Lines { first, last } if first == last => write!(f, "line {first}"),
            Self::Lines { first, last } => write!(f, "lines {first} to {last}"),
            Self::Byte { offset, number } => write!(f, "document {number}, byte {offset}"),
        }
    }
}

/// A document and its place, or why it could not be read.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) place: Place,
    pub(crate) document: Result<RawDocumentBuf, String>,
    /// A note for the user about the source, although the record could be read.
    pub(crate) note: Option<String>,
}

/// The records of a source, up to a failure of the source itself.
pub(crate) type Records = Box<dyn Iterator<Item = io::Result<Record>>>;

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;
    use crate::{output::canonical, testing::value};

    /// Reads a file up to its end, or to where it cannot be read further.
    fn read(format: &Format, bytes: Vec<u8>) -> Vec<Record> {
        let opened = (format.open)(Box::new(Cursor::new(bytes)), &InputOptions::default());
        opened.map(|records| records.map_while(Result::ok).collect()).unwrap_or_default()
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_to_their_end(bytes in any::<Vec<u8>>()) {
            for format in FORMATS {
                prop_assert!(read(format, bytes.clone()).len() <= bytes.len() + 1);
            }
        }

        #[test]
        fn a_damaged_document_does_not_hide_the_next(
            value in value(),
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
        ) {
            // A quote, a slash or a bracket that the damage makes can hide what follows it.
            prop_assume!(!b"\"'/[{(\n\\".contains(&byte));
            let mut text = format!("{{\"a\":{}}}\n", canonical(value)).into_bytes();
            let at = at.index(text.len() - 1);
            prop_assume!(!b"\"'/]})\n\\".contains(&text[at]));
            text[at] = byte;
            text.extend_from_slice(b"{\"last\":1}\n");
            let records = read(by_name("json").unwrap(), text);
            let last = records.last().and_then(|record| record.document.as_ref().ok());
            prop_assert_eq!(last.and_then(|last| last.get_i32("last").ok()), Some(1));
        }

        #[test]
        fn a_dump_is_read_as_what_was_written(values in prop::collection::vec(value(), 0..4)) {
            let documents = values.into_iter().map(|value| bson::doc! { "a": value });
            let raw: Vec<_> = documents.map(|document| RawDocumentBuf::try_from(&document).unwrap()).collect();
            let bytes = raw.iter().flat_map(|raw| raw.as_bytes().to_vec()).collect();
            let read = read(by_name("bson").unwrap(), bytes);
            prop_assert_eq!(read.into_iter().map(|record| record.document.unwrap()).collect::<Vec<_>>(), raw);
        }
    }
}
