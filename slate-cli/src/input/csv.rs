use std::{
    collections::VecDeque,
    io::{self, BufRead, Read},
};

use bson::{Bson, Decimal128, Document, RawDocumentBuf};

use super::{Options, Place, Record, Records, infer};
use crate::json::{self, Dialect};

/// Longest text of one record. An unclosed quote makes every later line part of its record.
const LONGEST: usize = 32 << 20;

/// Reads a table with commas between its columns.
pub(super) fn open_csv(source: Box<dyn BufRead>, options: &Options) -> io::Result<Records> {
    Table::open(source, options.delimiter.unwrap_or(b','), options)
}

/// Reads a table with tabulators between its columns.
pub(super) fn open_tsv(source: Box<dyn BufRead>, options: &Options) -> io::Result<Records> {
    Table::open(source, options.delimiter.unwrap_or(b'\t'), options)
}

/// A table whose first line names the columns. A name can end with a type, as `mongoimport --columnsHaveTypes` reads it:
/// `zip.string()`. A dot in a name leads into a document. An empty cell is a missing field.
struct Table {
    source: Box<dyn BufRead>,
    delimiter: u8,
    columns: Vec<Column>,
    /// Number of lines read.
    count: u64,
    /// Lines that were read ahead, with their numbers.
    waiting: VecDeque<Line>,
    /// What the next record reports about the table.
    note: Option<String>,
}

/// A line and its number, counted from 1.
type Line = (u64, Vec<u8>);

struct Column {
    path: String,
    kind: Kind,
    seen: Seen,
}

/// The kinds of cells that a column without a type has had so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Seen {
    #[default]
    Neither,
    /// Numbers.
    Numbers,
    /// Digits that are a string, such as `007`.
    Digits,
    /// Both, which has been reported.
    Both,
}

/// The types that a header can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Auto,
    Boolean,
    Date,
    Decimal,
    Double,
    Int32,
    Int64,
    Json,
    ObjectId,
    String,
}

/// The kinds by name.
static KINDS: &[(&str, Kind)] = &[
    ("auto", Kind::Auto),
    ("boolean", Kind::Boolean),
    ("date", Kind::Date),
    ("decimal", Kind::Decimal),
    ("double", Kind::Double),
    ("int32", Kind::Int32),
    ("int64", Kind::Int64),
    ("json", Kind::Json),
    ("objectId", Kind::ObjectId),
    ("string", Kind::String),
];

impl Column {
    fn of(header: &str) -> Self {
        let typed = header.strip_suffix("()").and_then(|header| header.rsplit_once('.'));
        let kind = typed.and_then(|(path, name)| {
            let (_, kind) = KINDS.iter().find(|(known, _)| *known == name)?;
            Some(Self { path: path.to_owned(), kind: *kind, seen: Seen::default() })
        });
        kind.unwrap_or_else(|| Self { path: header.trim().to_owned(), kind: Kind::Auto, seen: Seen::default() })
    }

    /// Takes note of a value. Returns what to report when digits become numbers in one line and a string in another.
    fn note(&mut self, text: &str, value: &Bson) -> Option<String> {
        let now = match value {
            Bson::Int32(_) | Bson::Int64(_) | Bson::Double(_) => Seen::Numbers,
            Bson::String(_) if is_digits(text) => Seen::Digits,
            _ => return None,
        };
        match (self.seen, now) {
            (Seen::Both, _) => None,
            (Seen::Neither, now) => {
                self.seen = now;
                None
            }
            (before, now) if before == now => None,
            _ => {
                self.seen = Seen::Both;
                let path = &self.path;
                Some(format!(
                    "column {path}: some cells are numbers and some, such as 007, strings: name its type, as in {path}.string()"
                ))
            }
        }
    }

    fn value(&self, text: &str) -> Result<Bson, String> {
        let parsed = match self.kind {
            Kind::Auto => Some(infer(text)),
            Kind::Boolean => text.to_ascii_lowercase().parse().ok().map(Bson::Boolean),
            Kind::Date => json::millis(text).map(|millis| Bson::DateTime(bson::DateTime::from_millis(millis))),
            Kind::Decimal => text.parse::<Decimal128>().ok().map(Bson::Decimal128),
            Kind::Double => text.parse().ok().map(Bson::Double),
            Kind::Int32 => text.parse().ok().map(Bson::Int32),
            Kind::Int64 => text.parse().ok().map(Bson::Int64),
            Kind::Json => {
                return json::value(text, Dialect::DATA).map_err(|why| format!("column {}: {why}", self.path));
            }
            Kind::ObjectId => text.parse().ok().map(Bson::ObjectId),
            Kind::String => Some(Bson::String(text.to_owned())),
        };
        let name = || KINDS.iter().find(|(_, kind)| *kind == self.kind).map_or("", |(name, _)| name);
        parsed.ok_or_else(|| format!("column {}: {text:?} is not of type {}", self.path, name()))
    }
}

impl Table {
    fn open(source: Box<dyn BufRead>, delimiter: u8, options: &Options) -> io::Result<Records> {
        let mut table = Self { source, delimiter, columns: Vec::new(), count: 0, waiting: VecDeque::new(), note: None };
        let names = match &options.columns {
            Some(columns) => columns.clone(),
            None => table.header()?,
        };
        if let [name] = &*names {
            let other = [';', '\t', '|', ','].into_iter().find(|other| name.contains(*other));
            table.note =
                other.map(|other| format!("there is one column, {name:?}: for several add --delimiter {other:?}"));
        }
        table.columns = names.iter().map(|name| Column::of(name)).collect();
        let mut paths: Vec<&str> = table.columns.iter().map(|column| column.path.as_str()).collect();
        paths.sort_unstable();
        let repeated = paths.windows(2).find_map(|pair| match pair {
            [first, second] if first == second => Some((*first).to_owned()),
            _ => None,
        });
        match repeated {
            Some(name) => {
                Err(io::Error::new(io::ErrorKind::InvalidData, format!("the header has the column {name:?} twice")))
            }
            None => Ok(Box::new(table)),
        }
    }

    fn header(&mut self) -> io::Result<Vec<String>> {
        let Some(((_, text), _)) = self.lines_of_record()? else { return Ok(Vec::new()) };
        let failed = |why: String| io::Error::new(io::ErrorKind::InvalidData, format!("the header: {why}"));
        let cells = self.cells(&text).map_err(failed)?;
        if cells.iter().any(|cell| cell.trim().is_empty()) {
            return Err(failed("a column has no name".into()));
        }
        Ok(cells)
    }

    fn record(&mut self) -> io::Result<Option<Record>> {
        let Some(((number, text), ahead)) = self.lines_of_record()? else { return Ok(None) };
        let document = if is_open(&text) { Err("a quote is not closed".into()) } else { self.document(&text) };
        if document.is_err() {
            // Only this line is bad: the next ones may be records of their own.
            ahead.into_iter().rev().for_each(|line| self.waiting.push_front(line));
        }
        Ok(Some(Record { place: Place::Line(number), document, note: self.note.take() }))
    }

    /// Returns the text of the next record, and separately the lines of the record after its first. A record begins with
    /// the next line that is not empty and ends with the line that closes the last open quote.
    fn lines_of_record(&mut self) -> io::Result<Option<(Line, Vec<Line>)>> {
        let (number, mut text) = loop {
            match self.next_line()? {
                Some((_, line)) if line.iter().all(|byte| matches!(byte, b'\r' | b'\n')) => {}
                Some(line) => break line,
                None => return Ok(None),
            }
        };
        let mut ahead = Vec::new();
        while is_open(&text) && text.len() < LONGEST {
            let Some((number, line)) = self.next_line()? else { break };
            text.extend_from_slice(&line);
            ahead.push((number, line));
        }
        Ok(Some(((number, text), ahead)))
    }

    fn document(&mut self, text: &[u8]) -> Result<RawDocumentBuf, String> {
        let cells = self.cells(text)?;
        if cells.len() > self.columns.len() {
            return Err(format!("{} cells, more than the {} columns", cells.len(), self.columns.len()));
        }
        let mut document = Document::new();
        for (column, cell) in self.columns.iter_mut().zip(&cells).filter(|(_, cell)| !cell.is_empty()) {
            let value = column.value(cell)?;
            if column.kind == Kind::Auto {
                self.note = self.note.take().or_else(|| column.note(cell, &value));
            }
            put(&mut document, &column.path, value)?;
        }
        RawDocumentBuf::try_from(&document).map_err(|error| error.to_string())
    }

    fn cells(&self, text: &[u8]) -> Result<Vec<String>, String> {
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .delimiter(self.delimiter)
            .buffer_capacity(text.len().clamp(16, 1 << 16))
            .from_reader(text);
        let mut record = csv::StringRecord::new();
        match reader.read_record(&mut record) {
            Ok(_) => Ok(record.iter().map(str::to_owned).collect()),
            Err(error) if matches!(error.kind(), csv::ErrorKind::Utf8 { .. }) => Err("the text is not UTF-8".into()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn next_line(&mut self) -> io::Result<Option<Line>> {
        if let Some(line) = self.waiting.pop_front() {
            return Ok(Some(line));
        }
        let mut line = Vec::new();
        if self.source.by_ref().take(LONGEST as u64).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        self.count += 1;
        Ok(Some((self.count, line)))
    }
}

/// Returns whether a quote is open at the end: quotes within a cell are doubled.
fn is_open(text: &[u8]) -> bool {
    text.iter().filter(|byte| **byte == b'"').count() % 2 == 1
}

/// Returns whether a text is an integer, however it is written.
fn is_digits(text: &str) -> bool {
    let digits = text.trim_start_matches(['-', '+']);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the first name of a column that leads into a document, and the rest.
fn split(name: &str) -> Option<(&str, &str)> {
    name.split_once('.').filter(|(first, rest)| !first.is_empty() && !rest.is_empty())
}

/// Returns whether a column of this name leads into a document.
pub(crate) fn is_path(name: &str) -> bool {
    split(name).is_some()
}

/// Puts a value at a path.
fn put(document: &mut Document, path: &str, value: Bson) -> Result<(), String> {
    let Some((first, rest)) = split(path) else {
        document.insert(path, value);
        return Ok(());
    };
    match document.entry(first.to_owned()).or_insert_with(|| Bson::Document(Document::new())) {
        Bson::Document(inner) => put(inner, rest, value),
        _ => Err(format!("the columns {first} and {path} exclude each other")),
    }
}

impl Iterator for Table {
    type Item = io::Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        self.record().transpose()
    }
}

#[cfg(test)]
mod tests {
    use bson::doc;

    use super::*;

    fn read(text: &str, columns: Option<&[&str]>) -> Vec<(Place, Result<Document, String>)> {
        let columns = columns.map(|columns| columns.iter().map(|name| (*name).to_owned()).collect());
        let options = Options { columns, ..Options::default() };
        let records = open_csv(Box::new(io::Cursor::new(text.to_owned().into_bytes())), &options).unwrap();
        let document = |record: io::Result<Record>| {
            let record = record.unwrap();
            (record.place, record.document.map(|document| Document::try_from(document.as_ref()).unwrap()))
        };
        records.map(document).collect()
    }

    #[test]
    fn cells_are_typed_by_what_they_look_like_or_by_the_header() {
        let text = "_id,name,zip.string(),address.city,n.int64()\n1,Ada,007,\"Oslo, Norway\",5\n2,,,\"a\nb\",\n";
        assert_eq!(
            read(text, None),
            [
                (
                    Place::Line(2),
                    Ok(
                        doc! { "_id": 1, "name": "Ada", "zip": "007", "address": { "city": "Oslo, Norway" }, "n": 5_i64 }
                    )
                ),
                (Place::Line(3), Ok(doc! { "_id": 2, "address": { "city": "a\nb" } })),
            ]
        );
        assert_eq!(read("1,x\r\n", Some(&["a", "b"])), [(Place::Line(1), Ok(doc! { "a": 1, "b": "x" }))]);
    }

    #[test]
    fn a_bad_record_costs_only_itself() {
        let text = "a.int32(),b\n1,x\nz,y\n3,\"open\n4,y,extra\n5\n";
        let found: Vec<_> = read(text, None).into_iter().map(|(place, document)| (place, document.is_ok())).collect();
        let line = Place::Line;
        assert_eq!(found, [(line(2), true), (line(3), false), (line(4), false), (line(5), false), (line(6), true)]);
    }

    #[test]
    fn mixed_digits_and_a_single_column_are_noted_once() {
        let notes = |text: &'static str| -> Vec<String> {
            let records = open_csv(Box::new(io::Cursor::new(text)), &Options::default()).unwrap();
            records.filter_map(|record| record.unwrap().note).collect()
        };
        assert_eq!(notes("zip,n\n10115,1\n01067,2\n10117,x\n007,3\n").len(), 1);
        assert_eq!(notes("zip\n01067\n10115\n").len(), 1);
        assert!(notes("zip.string(),n\n10115,007\n01067,008\n").is_empty());
        assert_eq!(notes("a;b\n1;2\n3;4\n"), ["there is one column, \"a;b\": for several add --delimiter ';'"]);
        let options = Options { delimiter: Some(b';'), ..Options::default() };
        let mut records = open_csv(Box::new(io::Cursor::new("a;b\n1;\"x;y\"\n")), &options).unwrap();
        let record = records.next().unwrap().unwrap();
        assert_eq!(record.note, None);
        assert_eq!(Document::try_from(record.document.unwrap().as_ref()).unwrap(), doc! { "a": 1, "b": "x;y" });
    }

    #[test]
    fn a_header_must_name_each_column_once() {
        let header = |text: &'static str| open_csv(Box::new(io::Cursor::new(text)), &Options::default()).err();
        assert!(header("a,b,a\n").is_some_and(|error| error.to_string().contains("\"a\" twice")));
        assert!(header("a,,b\n").is_some());
    }
}
