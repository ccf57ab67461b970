//! What `import` reads. A format turns bytes into records; a bad record costs only itself and is reported by place.
//!
//! A new format is one file and one line in [`FORMATS`].

mod bson_dump;
mod csv;
mod files;
mod infer;
mod json;
mod metadata;
mod source;
mod zstd;

use std::{
    fmt,
    io::{self, BufRead},
};

use ::bson::RawDocumentBuf;

pub(crate) use csv::is_path;
pub(crate) use files::{Input, encoded, find};
pub(crate) use infer::{infer, oid_text};
pub(crate) use metadata::{Metadata, SUFFIX as METADATA_SUFFIX, write as write_metadata};
pub(crate) use source::{Source, uncompressed_name};

use crate::json::{BigIntegers, Position};

/// A format that can be read.
pub(crate) struct Format {
    pub(crate) name: &'static str,
    /// Endings of file names, without those of compression.
    pub(crate) extensions: &'static [&'static str],
    pub(crate) open: fn(Box<dyn BufRead>, &Options) -> io::Result<Records>,
}

/// The formats by name.
pub(crate) static FORMATS: &[Format] = &[
    Format { name: "json", extensions: &["json", "jsonl", "ndjson"], open: json::open },
    Format { name: "csv", extensions: &["csv"], open: csv::open_csv },
    Format { name: "tsv", extensions: &["tsv", "tab"], open: csv::open_tsv },
    Format { name: "bson", extensions: &["bson"], open: bson_dump::open },
];

/// The names of the formats.
pub(crate) fn names() -> Vec<&'static str> {
    FORMATS.iter().map(|format| format.name).collect()
}

/// The format with this name.
pub(crate) fn by_name(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

/// The format of file names with this extension.
pub(crate) fn by_extension(extension: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.extensions.iter().any(|other| other.eq_ignore_ascii_case(extension)))
}

/// Choices of the user about how records are read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    pub(crate) big_integers: BigIntegers,
    /// The columns of a table without a header.
    pub(crate) columns: Option<Vec<String>>,
}

/// Where a record is in its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Text(Position),
    /// Line in a table, counted from 1.
    Line(u64),
    /// Byte in a binary file, counted from 0.
    Byte(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(position) => write!(f, "{position}"),
            Self::Line(line) => write!(f, "line {line}"),
            Self::Byte(offset) => write!(f, "byte {offset}"),
        }
    }
}

/// A document and its place, or why it could not be read.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) place: Place,
    pub(crate) document: Result<RawDocumentBuf, String>,
}

/// The records of a source, up to a failure of the source itself.
pub(crate) type Records = Box<dyn Iterator<Item = io::Result<Record>>>;
