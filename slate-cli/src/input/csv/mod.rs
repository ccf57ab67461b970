//! Tables: comma-separated and tab-separated values.
//!
//! `CsvRows` splits a text into cells, `Columns` makes a document of them. The first row names the columns; a name can end with
//! a type, as `mongoimport --columnsHaveTypes` reads it: `zip.string()`. A dot in a name leads into a document. An empty
//! cell is a missing field.

mod columns;
mod date_layout;
mod kind;
mod rows;

use std::io::{self, BufRead};

use self::{
    columns::Columns,
    rows::{CsvRows, Lines},
};
use super::{InputOptions, Place, Record, Records};

pub(crate) use columns::is_path;

/// Reads a table with commas between its columns.
pub(super) fn open_csv(source: Box<dyn BufRead>, options: &InputOptions) -> io::Result<Records> {
    Ok(Box::new(Table::open(source, b',', options)?))
}

/// Reads a table with tabulators between its columns.
pub(super) fn open_tsv(source: Box<dyn BufRead>, options: &InputOptions) -> io::Result<Records> {
    Ok(Box::new(Table::open(source, b'\t', options)?))
}

struct Table {
    rows: CsvRows,
    columns: Columns,
    /// A message about the table, which the next record carries.
    note: Option<String>,
}

impl Table {
    fn open(source: Box<dyn BufRead>, usual: u8, options: &InputOptions) -> io::Result<Self> {
        let mut rows = CsvRows::new(source, options.delimiter, usual);
        let names = match &options.columns {
            Some(columns) => columns.clone(),
            None => header(&mut rows)?,
        };
        let columns = Columns::new(&names).map_err(invalid)?;
        let note = match &*names {
            [name] if columns.are_untyped() => {
                let other = [';', '\t', '|', ','].into_iter().find(|other| name.contains(*other));
                other.map(|other| format!("there is one column, {name:?}: for several add --delimiter {other:?}"))
            }
            _ => None,
        };
        Ok(Self { rows, columns, note })
    }

    fn record(&mut self) -> io::Result<Option<Record>> {
        let Some((lines, row)) = self.rows.next(self.columns.len())? else { return Ok(None) };
        let document = match row {
            Err(fault) => Err(fault.to_string()),
            Ok(cells) if cells > self.columns.len() => {
                Err(format!("{cells} cells, more than the {} columns", self.columns.len()))
            }
            Ok(_) => self.columns.document(self.rows.cells()).map(|(document, note)| {
                self.note = self.note.take().or(note);
                document
            }),
        };
        let Lines { first, last } = lines;
        Ok(Some(Record { place: Place::Lines { first, last }, document, note: self.note.take() }))
    }
}

/// Returns the names of the columns in the first row; none if there is no row.
fn header(rows: &mut CsvRows) -> io::Result<Vec<String>> {
    let Some((lines, row)) = rows.next(usize::MAX)? else { return Ok(Vec::new()) };
    let named = |why: String| invalid(format!("line {}: the header: {why}", lines.first));
    row.map_err(|fault| named(fault.to_string()))?;
    let cells = rows.cells().map(|cell| cell.map(str::to_owned));
    cells.collect::<Option<_>>().ok_or_else(|| named("the text is not UTF-8".into()))
}

fn invalid(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

impl Iterator for Table {
    type Item = io::Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        self.record().transpose()
    }
}

#[cfg(test)]
mod tests;
