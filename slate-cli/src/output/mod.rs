//! How documents are written: to people, to programs, to files.
//!
//! A new format is one file and one line in [`FORMATS`].

mod bson_dump;
pub(crate) mod cell;
mod columns;
mod csv;
mod file;
mod json;
mod jsonl;
mod table;
mod text;

use std::{
    collections::HashSet,
    io::{self, Write},
};

use ::bson::RawDocument;

pub(crate) use columns::{Column, Columns};
pub(crate) use file::File;
pub(crate) use table::Grid;
pub(crate) use text::{canonical, counted, documents, indented, relaxed};

use crate::{
    endpoint::Rows as Documents,
    failure::{Failure, Result},
    session,
};

/// A format that can be written.
pub(crate) struct Format {
    pub(crate) name: &'static str,
    /// Endings of file names, without those of compression.
    pub(crate) extensions: &'static [&'static str],
    /// Whether all documents are read first, for their columns.
    pub(crate) columns: Columns,
    pub(crate) begin: for<'w> fn(&'w mut dyn Write, &'w Layout) -> Box<dyn Rows + 'w>,
}

/// The format for people.
static TABLE: Format = Format { name: "table", extensions: &[], columns: Columns::NotNeeded, begin: table::begin };

/// The format for programs.
pub(crate) static JSON_LINES: Format = Format {
    name: "jsonl",
    extensions: &["jsonl", "ndjson"],
    columns: Columns::NotNeeded,
    begin: jsonl::begin_relaxed,
};

/// The formats by name.
pub(crate) static FORMATS: &[&Format] = &[
    &TABLE,
    &JSON_LINES,
    &Format { name: "json", extensions: &["json"], columns: Columns::NotNeeded, begin: json::begin },
    &Format { name: "canonical", extensions: &[], columns: Columns::NotNeeded, begin: jsonl::begin_canonical },
    &Format { name: "csv", extensions: &["csv"], columns: Columns::Needed, begin: csv::begin_csv },
    &Format { name: "tsv", extensions: &["tsv", "tab"], columns: Columns::Needed, begin: csv::begin_tsv },
    &Format { name: "bson", extensions: &["bson"], columns: Columns::NotNeeded, begin: bson_dump::begin },
];

/// Returns the names of the formats.
pub(crate) fn names() -> Vec<&'static str> {
    FORMATS.iter().map(|format| format.name).collect()
}

/// Returns the format with this name.
pub(crate) fn by_name(name: &str) -> Option<&'static Format> {
    FORMATS.iter().copied().find(|format| format.name == name)
}

/// Returns the format of file names with this extension.
pub(crate) fn by_extension(extension: &str) -> Option<&'static Format> {
    FORMATS.iter().copied().find(|format| format.extensions.iter().any(|other| other.eq_ignore_ascii_case(extension)))
}

/// The name of the format that a terminal cannot show.
const BYTES: &str = "bson";

/// Returns the format of results on standard output: a table for people, JSON Lines for programs.
///
/// # Errors
/// Fails as [`on_standard_output`] does.
pub(crate) fn of_results(chosen: Option<&str>) -> Result<&'static Format> {
    on_standard_output(chosen, if session::on_terminal() { &TABLE } else { &JSON_LINES })
}

/// Returns the chosen format, or the usual one, for standard output.
///
/// # Errors
/// Fails if the format is not text and the output is a terminal.
pub(crate) fn on_standard_output(chosen: Option<&str>, usual: &'static Format) -> Result<&'static Format> {
    // The command line accepts only names of formats.
    let format = chosen.and_then(by_name).unwrap_or(usual);
    if format.name == BYTES && session::on_terminal() {
        return Err(Failure::usage("BSON is not text: a terminal cannot show it")
            .hint("write it to a file or to another program, or choose another --format"));
    }
    Ok(format)
}

/// What a format needs to know before the first document.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    /// The width of the terminal.
    pub(crate) width: usize,
    /// The columns of the documents, for formats that need them.
    pub(crate) columns: Vec<Column>,
    pub(crate) cells: Cells,
}

/// How tables in text are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Cells {
    /// As text, which other programs read. Types may be lost.
    #[default]
    Plain,
    /// With types in the header, so that `import` reads the same documents.
    Typed,
}

/// Writes documents one after the other.
pub(crate) trait Rows {
    /// Writes a document.
    ///
    /// # Errors
    /// Fails if the document is damaged or the file cannot be written.
    fn row(&mut self, document: &RawDocument) -> io::Result<()>;

    /// Writes the end of the file; nothing by default.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Checks that each field of a document has a column.
///
/// # Errors
/// Fails with the name of a field that has none, or if the document is damaged.
fn check_columns(document: &RawDocument, columns: &HashSet<&str>) -> Result<()> {
    for (field, _) in text::document(document)? {
        if !columns.contains(&*field) {
            return Err(Failure::new(format!(
                "the field {field:?} was added while the documents were read: it has no column"
            ))
            .hint("try again, or choose the fields with --project, or another format"));
        }
    }
    Ok(())
}

/// Writes all documents of a query. `open` runs it, a second time for formats that need the columns first. Returns the
/// number of documents.
///
/// # Errors
/// Fails if the query fails or the output cannot be written, or if the second run returns a field that the first did not.
pub(crate) fn write(
    format: &Format,
    cells: Cells,
    out: &mut dyn Write,
    open: impl Fn() -> Result<Documents>,
    mut progress: impl FnMut(),
) -> Result<u64> {
    let columns = match format.columns {
        Columns::NotNeeded => Vec::new(),
        Columns::Needed => columns::gather(open()?, cells)?,
    };
    let layout = Layout { width: session::width(), columns, cells };
    let mut rows = (format.begin)(out, &layout);
    let known: HashSet<&str> = layout.columns.iter().map(|column| &*column.field).collect();
    let (mut documents, mut count) = (open()?, 0);
    let mut write = |document: &RawDocument| {
        if format.columns == Columns::Needed {
            check_columns(document, &known)?;
        }
        Ok(rows.row(document)?)
    };
    while documents.next(&mut write)?.is_some() {
        count += 1;
        progress();
    }
    rows.finish()?;
    Ok(count)
}
