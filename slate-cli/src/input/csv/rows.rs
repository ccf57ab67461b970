//! Splits the text of a table into rows of cells.
//!
//! `csv-core` finds the ends of cells and removes their quotes. It accepts every text; this module keeps the bytes of
//! the row beside it and refuses what cannot be read as it is written, so that no byte is dropped or changed unnoticed:
//!
//! ```text
//! window  … 1,"a ""b""",5" pipe \n 2,…      bytes that were read
//!           ^ start               ^ start + at
//! text    1a "b"5" pipe                     cells without their quotes
//! ends     ^    ^      ^
//! ```

use std::{
    fmt,
    io::{self, BufRead},
};

use csv_core::{ReadFieldResult, Reader, ReaderBuilder, Terminator};

/// Longest row, in bytes. A document has at most 16 MiB; quotes and hexadecimal digits can double the length of a text.
const LONGEST: usize = 32 << 20;

/// Number of first bytes that decide what ends a line, and size from which consumed bytes are dropped.
const BUFFER: usize = 1 << 16;

/// The most bytes that are read again after unclosed quotes, in all. Without this bound, a file of nothing but faults
/// would take time quadratic in its size.
const MOST_READ_AGAIN: usize = 64 << 20;

/// The rows of a table.
pub(super) struct CsvRows {
    source: Box<dyn BufRead>,
    core: Reader,
    /// The byte that ends a line: a line feed, or a carriage return in a file without line feeds.
    terminator: u8,
    window: Vec<u8>,
    /// Offset in `window` of the first byte that is not consumed.
    start: usize,
    /// The line of this byte, counted from 1.
    line: u64,
    end: End,
    text: Vec<u8>,
    ends: Vec<usize>,
    read_again: usize,
}

/// Whether the source has more bytes.
#[derive(Debug)]
enum End {
    Ahead,
    Reached,
    /// The source failed. The failure is returned after the rows before it.
    Failed(Option<io::Error>),
}

/// The lines of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lines {
    pub(super) first: u64,
    pub(super) last: u64,
}

/// Why the bytes of a row cannot be read as they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Unclosed,
    TextAfterQuote,
    /// A carriage return or a line feed within a cell without quotes: it may be the end of a line.
    LineEnd,
    TooLong,
    /// The text ends within the row because reading the source failed.
    Cut,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unclosed => "a quote is not closed",
            Self::TextAfterQuote => "text follows the closing quote of a cell: within quotes, a quote is written twice",
            Self::LineEnd => "a line end of another kind is in a cell without quotes: end all lines alike, or quote it",
            Self::TooLong => "the record is longer than 32 MiB",
            Self::Cut => "the text ends within the record",
        })
    }
}

impl CsvRows {
    /// Reads the rows of `source`, whose cells are separated by the byte `chosen`, otherwise by the one that the first line names,
    /// otherwise by `usual`.
    pub(super) fn new(source: Box<dyn BufRead>, chosen: Option<u8>, usual: u8) -> Self {
        let mut rows = Self {
            source,
            core: Reader::new(),
            terminator: b'\n',
            window: Vec::new(),
            start: 0,
            line: 1,
            end: End::Ahead,
            text: Vec::new(),
            ends: Vec::new(),
            read_again: 0,
        };
        rows.terminator = rows.find_terminator();
        let named = rows.take_named_delimiter();
        let delimiter = chosen.or(named).unwrap_or(usual);
        rows.core = ReaderBuilder::new().delimiter(delimiter).terminator(Terminator::Any(rows.terminator)).build();
        rows.reset();
        rows
    }

    fn find_terminator(&mut self) -> u8 {
        while self.window.len() < BUFFER && !self.window.contains(&b'\n') && self.is_ahead() {
            self.fill();
        }
        let head = self.window.get(..BUFFER).unwrap_or(&self.window);
        if head.contains(&b'\r') && !head.contains(&b'\n') { b'\r' } else { b'\n' }
    }

    /// Skips a first line such as `sep=;`, which names the delimiter for Excel, and returns the delimiter; `None` without such a
    /// line.
    fn take_named_delimiter(&mut self) -> Option<u8> {
        let line = self.ahead().split_inclusive(|byte| *byte == self.terminator).next()?;
        let length = line.len();
        let delimiter = match line.trim_ascii_end().strip_prefix(b"sep=") {
            Some([delimiter]) if delimiter.is_ascii_punctuation() && *delimiter != b'"' => *delimiter,
            Some([]) if line.starts_with(b"sep=\t") => b'\t',
            _ => return None,
        };
        self.consume(length);
        Some(delimiter)
    }

    /// Reads the next row that is not an empty line. Stores its first `most` cells; returns its lines and the number of all its
    /// cells, `None` at the end. After a fault, reading continues with the line after the first line of the row.
    ///
    /// # Errors
    /// Fails if the source fails, after all rows before the failure.
    pub(super) fn next(&mut self, most: usize) -> io::Result<Option<(Lines, Result<usize, Fault>)>> {
        if !self.skip_empty_lines() {
            return match &mut self.end {
                End::Failed(failure) => failure.take().map_or(Ok(None), Err),
                End::Ahead | End::Reached => Ok(None),
            };
        }
        let first = self.line;
        let (length, read) = self.row(most);
        match read {
            Ok(_) => self.consume(length),
            Err(_) => self.give_up(length),
        }
        let ends_line = self.start.checked_sub(1).and_then(|last| self.window.get(last)) == Some(&self.terminator);
        Ok(Some((Lines { first, last: self.line - u64::from(ends_line) }, read)))
    }

    /// Returns the cells of the last row; `None` for one that is not UTF-8.
    pub(super) fn cells(&self) -> impl Iterator<Item = Option<&str>> {
        let text =
            std::str::from_utf8(self.text.get(..self.ends.last().copied().unwrap_or(0)).unwrap_or_default()).ok();
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(move |(begin, end)| text?.get(begin..*end))
    }

    /// Reads a row. Returns the number of its bytes, and the number of its cells.
    fn row(&mut self, most: usize) -> (usize, Result<usize, Fault>) {
        let (mut at, mut out, mut count) = (0, 0, 0);
        let (mut cell, mut cell_out) = (0, 0);
        self.ends.clear();
        loop {
            if at == self.ahead().len() && self.is_ahead() {
                if at > LONGEST {
                    return (at, Err(Fault::TooLong));
                }
                self.fill();
                continue;
            }
            // At the end, an empty input ends the last cell.
            let input = self.window.get(self.start + at..).unwrap_or_default();
            let output = self.text.get_mut(out..).unwrap_or_default();
            let (result, read, written) = self.core.read_field(input, output);
            let at_end = input.is_empty();
            (at, out) = (at + read, out + written);
            match result {
                ReadFieldResult::InputEmpty => {}
                ReadFieldResult::OutputFull => self.text.resize((self.text.len() * 2).max(1 << 10), 0),
                ReadFieldResult::End => return (at, Ok(count)),
                ReadFieldResult::Field { record_end } => {
                    if at_end && matches!(self.end, End::Failed(_)) {
                        return (at, Err(Fault::Cut));
                    }
                    let raw = self.ahead().get(cell..at - usize::from(!at_end)).unwrap_or_default();
                    let stripped = if record_end { self.without_carriage_returns(raw) } else { raw };
                    if let Err(fault) = check(stripped, self.terminator) {
                        return (at, Err(fault));
                    }
                    if count < most {
                        self.ends.push(out.saturating_sub(raw.len() - stripped.len()).max(cell_out));
                    }
                    count += 1;
                    (cell, cell_out) = (at, out);
                    if record_end {
                        return (at, Ok(count));
                    }
                }
            }
        }
    }

    /// Removes what belongs to the end of the line: the carriage return of Windows, or several of them from tools that
    /// converted a file twice.
    fn without_carriage_returns<'a>(&self, mut raw: &'a [u8]) -> &'a [u8] {
        while self.terminator == b'\n'
            && let [rest @ .., b'\r'] = raw
        {
            raw = rest;
        }
        raw
    }

    /// Skips the first line of a row that cannot be read. `length` is the number of bytes in which the fault was found.
    /// All these bytes are skipped if too many were read again already.
    fn give_up(&mut self, length: usize) {
        let line = self.ahead().iter().take(length).position(|byte| *byte == self.terminator);
        self.read_again += length - line.unwrap_or(length);
        self.skip_line(if self.read_again > MOST_READ_AGAIN { length.saturating_sub(1) } else { 0 });
        self.reset();
    }

    /// Makes `csv-core` expect the beginning of a row. It skips the terminator as an empty line, and takes no later bytes
    /// for a byte-order mark.
    fn reset(&mut self) {
        self.core.reset();
        self.core.read_field(&[self.terminator], &mut [0]);
    }

    /// Skips empty lines. Returns whether a row follows.
    fn skip_empty_lines(&mut self) -> bool {
        loop {
            let ahead = self.ahead();
            let blank =
                if self.terminator == b'\n' { ahead.iter().take_while(|byte| **byte == b'\r').count() } else { 0 };
            match ahead.get(blank) {
                Some(byte) if *byte == self.terminator => self.consume(blank + 1),
                Some(_) => return true,
                None if self.is_ahead() && blank <= BUFFER => self.fill(),
                None if self.is_ahead() => return true,
                None => {
                    self.consume(blank);
                    return false;
                }
            }
        }
    }

    /// Consumes everything up to the end of the line that has the byte at this offset.
    fn skip_line(&mut self, mut offset: usize) {
        loop {
            let ahead = self.ahead();
            if let Some(end) = ahead.iter().skip(offset).position(|byte| *byte == self.terminator) {
                return self.consume(offset + end + 1);
            }
            let length = ahead.len();
            self.consume(length);
            if !self.is_ahead() {
                return;
            }
            offset = 0;
            self.fill();
        }
    }

    fn ahead(&self) -> &[u8] {
        self.window.get(self.start..).unwrap_or_default()
    }

    fn is_ahead(&self) -> bool {
        matches!(self.end, End::Ahead)
    }

    fn consume(&mut self, length: usize) {
        let lines = self.ahead().iter().take(length).filter(|byte| **byte == self.terminator).count();
        self.line += lines as u64;
        self.start += length;
    }

    /// Reads more bytes into the window. Drops those that are consumed, except the last one, when they are most of it.
    fn fill(&mut self) {
        if self.start > BUFFER && self.start > self.window.len() / 2 {
            self.window.drain(..self.start - 1);
            self.start = 1;
        }
        loop {
            match self.source.fill_buf() {
                Ok([]) => self.end = End::Reached,
                Ok(bytes) => {
                    self.window.extend_from_slice(bytes);
                    let length = bytes.len();
                    self.source.consume(length);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => self.end = End::Failed(Some(error)),
            }
            return;
        }
    }
}

/// Checks that a cell says what `csv-core` reads: a quote at its beginning is closed at its end, and a cell without
/// quotes has no end of a line.
fn check(raw: &[u8], terminator: u8) -> Result<(), Fault> {
    let [b'"', inner @ ..] = raw else {
        let other = if terminator == b'\n' { b'\r' } else { b'\n' };
        return if raw.contains(&other) { Err(Fault::LineEnd) } else { Ok(()) };
    };
    let mut rest = inner;
    loop {
        let quote = rest.iter().position(|byte| *byte == b'"').ok_or(Fault::Unclosed)?;
        match rest.get(quote + 1..).unwrap_or_default() {
            [] => return Ok(()),
            [b'"', after @ ..] => rest = after,
            _ => return Err(Fault::TextAfterQuote),
        }
    }
}
