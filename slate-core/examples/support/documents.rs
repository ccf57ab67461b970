//! Reads the documents of a text: documents one after the other, usually one per line, or the elements of one array.
//!
//! Only one document at a time is in memory. Unreadable text is reported with its position, and reading continues after
//! it.

use std::{
    collections::VecDeque,
    fmt,
    io::{self, BufRead},
};

use bson::Document;

#[path = "nesting.rs"]
mod nesting;

use self::nesting::Nesting;
use super::extjson::{self, Regexes, Unreadable};

/// Longest text of one document: a document of 16 MiB is shorter in every notation.
const LONGEST: usize = 256 << 20;

/// Position of a document in its file, counted from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Line(u64),
    Element(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(number) => write!(f, "line {number}"),
            Self::Element(number) => write!(f, "element {number}"),
        }
    }
}

/// A document and its position, or why it could not be read.
pub(crate) type Entry = (Place, Result<Document, Unreadable>);

/// Reads one document after the other.
pub(crate) struct Documents {
    input: Box<dyn BufRead>,
    form: Form,
    /// Number of lines or elements started so far.
    count: u64,
    /// Lines that were read ahead.
    waiting: VecDeque<(u64, Vec<u8>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Unknown,
    Lines,
    Array,
    Ended,
}

impl Documents {
    pub(crate) fn new(input: Box<dyn BufRead>) -> Self {
        Self { input, form: Form::Unknown, count: 0, waiting: VecDeque::new() }
    }

    fn entry(&mut self) -> io::Result<Option<Entry>> {
        if self.form == Form::Unknown {
            self.form = self.recognize()?;
        }
        match self.form {
            Form::Unknown | Form::Ended => Ok(None),
            Form::Lines => self.line_entry(),
            Form::Array => self.element_entry(),
        }
    }

    fn recognize(&mut self) -> io::Result<Form> {
        let mut blank_lines = 0;
        while let Some(byte) = self.peek()? {
            match byte {
                b'[' => {
                    self.input.consume(1);
                    return Ok(Form::Array);
                }
                b'\n' => blank_lines += 1,
                b' ' | b'\t' | b'\r' => {}
                _ => break,
            }
            self.input.consume(1);
        }
        self.count = blank_lines;
        Ok(Form::Lines)
    }

    fn peek(&mut self) -> io::Result<Option<u8>> {
        Ok(self.input.fill_buf()?.first().copied())
    }

    // Documents, one per line or over several lines.

    fn line_entry(&mut self) -> io::Result<Option<Entry>> {
        loop {
            let Some((number, line)) = self.next_line()? else { return Ok(None) };
            if line.trim_ascii().is_empty() {
                continue;
            }
            let document = match self.continued(&line)? {
                Some(text) => extjson::document(&text, Regexes::Values),
                None => extjson::document(&line, Regexes::Values),
            };
            return Ok(Some((Place::Line(number), document)));
        }
    }

    /// Returns the text of a document that begins in `line` and ends in a later line. Returns `None` if it does not
    /// end; the lines that were read ahead are then processed next, so that a broken document does not affect others.
    fn continued(&mut self, line: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let mut nesting = Nesting::default();
        line.iter().for_each(|byte| nesting.feed(*byte));
        if !line.trim_ascii_start().starts_with(b"{") || !nesting.is_open() {
            return Ok(None);
        }
        let (mut text, mut read) = (line.to_vec(), Vec::new());
        while nesting.is_open() && !nesting.in_string() {
            let Some((number, next)) = self.next_line()? else { break };
            let begins_another = next.starts_with(b"{") && is_whole(&next);
            next.iter().for_each(|byte| nesting.feed(*byte));
            text.extend_from_slice(&next);
            read.push((number, next));
            if begins_another || text.len() > LONGEST {
                break;
            }
        }
        if !read.is_empty() && !nesting.is_open() && extjson::document(&text, Regexes::Values).is_ok() {
            return Ok(Some(text));
        }
        read.into_iter().rev().for_each(|line| self.waiting.push_front(line));
        Ok(None)
    }

    fn next_line(&mut self) -> io::Result<Option<(u64, Vec<u8>)>> {
        if let Some(line) = self.waiting.pop_front() {
            return Ok(Some(line));
        }
        let mut line = Vec::new();
        if self.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        self.count += 1;
        Ok(Some((self.count, line)))
    }

    /// Reads to the end of the line and returns the number of bytes. Stores only the beginning of a line that is longer
    /// than any document.
    fn read_line(&mut self, line: &mut Vec<u8>) -> io::Result<usize> {
        let mut read = 0;
        loop {
            let buffer = self.input.fill_buf()?;
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(buffer.len(), |end| end + 1);
            let room = (LONGEST + 1).saturating_sub(line.len()).min(taken);
            line.extend_from_slice(buffer.get(..room).unwrap_or_default());
            self.input.consume(taken);
            read += taken;
            if end.is_some() || taken == 0 {
                return Ok(read);
            }
        }
    }

    // The elements of an array.

    fn element_entry(&mut self) -> io::Result<Option<Entry>> {
        while let Some(byte) = self.peek()? {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' | b',' => self.input.consume(1),
                b']' => {
                    self.form = Form::Ended;
                    return Ok(None);
                }
                _ => {
                    self.count += 1;
                    let document = match self.element()? {
                        Some(text) => extjson::document(&text, Regexes::Values),
                        None => Err(Unreadable::new("a string does not end, or the element is too long")),
                    };
                    return Ok(Some((Place::Element(self.count), document)));
                }
            }
        }
        self.form = Form::Ended;
        Ok(Some((Place::Element(self.count + 1), Err(Unreadable::new("the array does not end")))))
    }

    /// Returns the text of the element that begins here, up to the comma or bracket after it. Returns `None` if its end
    /// cannot be found; reading then continues at the beginning of a line.
    fn element(&mut self) -> io::Result<Option<Vec<u8>>> {
        let (mut text, mut nesting) = (Vec::new(), Nesting::default());
        while let Some(byte) = self.peek()? {
            if nesting.breaks_off_at(byte)
                || (!nesting.is_open() && !nesting.in_string() && matches!(byte, b',' | b']'))
            {
                break;
            }
            if text.len() > LONGEST || (nesting.in_string() && byte == b'\n') {
                self.skip_to_next_line_with_element()?;
                return Ok(None);
            }
            nesting.feed(byte);
            text.push(byte);
            self.input.consume(1);
        }
        Ok(Some(text))
    }

    fn skip_to_next_line_with_element(&mut self) -> io::Result<()> {
        loop {
            let mut ignored = Vec::new();
            if self.read_line(&mut ignored)? == 0 {
                return Ok(());
            }
            while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek()? {
                self.input.consume(1);
            }
            if matches!(self.peek()?, None | Some(b'{' | b']')) {
                return Ok(());
            }
        }
    }
}

/// Returns whether all brackets of a line are closed.
fn is_whole(line: &[u8]) -> bool {
    let mut nesting = Nesting::default();
    line.iter().for_each(|byte| nesting.feed(*byte));
    !nesting.is_open() && !nesting.in_string()
}

impl Iterator for Documents {
    type Item = io::Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        self.entry().transpose()
    }
}

#[cfg(test)]
mod tests {
    use bson::doc;

    use super::*;

    /// Formats what was read, by position: field `a` of a document, or nothing.
    fn read(text: &str) -> Vec<(Place, Option<i32>)> {
        let entries = Documents::new(Box::new(io::Cursor::new(text.to_owned().into_bytes())));
        let field = |entry: io::Result<Entry>| {
            let (place, document) = entry.unwrap();
            (place, document.ok().map(|document| document.get_i32("a").unwrap_or_default()))
        };
        entries.map(field).collect()
    }

    fn lines(found: &[(u64, Option<i32>)]) -> Vec<(Place, Option<i32>)> {
        found.iter().map(|(line, value)| (Place::Line(*line), *value)).collect()
    }

    fn elements(found: &[(u64, Option<i32>)]) -> Vec<(Place, Option<i32>)> {
        found.iter().map(|(element, value)| (Place::Element(*element), *value)).collect()
    }

    #[test]
    fn a_malformed_line_does_not_affect_others() {
        assert_eq!(
            read("{\"a\": 1}\n\nnothing\n{\"a\": 2\n{\"a\": 3}\n{\"a\": \"x\n{\"a\": 4}\n{\"a\": 5"),
            lines(&[(1, Some(1)), (3, None), (4, None), (5, Some(3)), (6, None), (7, Some(4)), (8, None)])
        );
    }

    #[test]
    fn a_document_can_span_several_lines() {
        assert_eq!(
            read("{\n  \"a\": 1,\n  \"b\": [\n    {}\n  ]\n}\n{\n  \"a\": 2\n}\n"),
            lines(&[(1, Some(1)), (7, Some(2))])
        );
    }

    #[test]
    fn array_elements_are_read_across_lines() {
        assert_eq!(
            read(" [{\"a\": 1},{\"a\":\n2} , {\"a\": 3}]\n"),
            elements(&[(1, Some(1)), (2, Some(2)), (3, Some(3))])
        );
        assert_eq!(read("[]"), []);
    }

    #[test]
    fn a_malformed_element_does_not_affect_others() {
        assert_eq!(
            read("[{\"a\": 1}, {\"a\": }, 5, {\"a\": [2}, {\"b\": {\"c\": 3}, {\"a\": 4}]"),
            elements(&[(1, Some(1)), (2, None), (3, None), (4, None), (5, None), (6, Some(4))])
        );
        assert_eq!(
            read("[\n{\"a\": \"x},\n{\"a\": 2},\n{\"a\": 3}\n]"),
            elements(&[(1, None), (2, Some(2)), (3, Some(3))])
        );
    }

    #[test]
    fn an_unterminated_array_is_reported() {
        assert_eq!(read("[{\"a\": 1}"), elements(&[(1, Some(1)), (2, None)]));
        assert_eq!(read("[{\"a\": 1}, {\"a\": 2"), elements(&[(1, Some(1)), (2, None), (3, None)]));
    }

    #[test]
    fn strings_can_contain_brackets_and_quotes() {
        let text = r#"[{"a": 1, "s": "]}\"{["}, {"a": 2}]"#;
        assert_eq!(read(text), elements(&[(1, Some(1)), (2, Some(2))]));
    }

    #[test]
    fn a_name_can_begin_with_a_byte_order_mark() {
        let text = io::Cursor::new("\u{feff}{\"\u{feff}ISO\": 0}\n".as_bytes());
        let input = crate::input::text(text).unwrap();
        let found: Vec<_> = Documents::new(input).map(|entry| entry.unwrap().1.unwrap()).collect();
        assert_eq!(found, [doc! { "\u{feff}ISO": 0 }]);
    }
}
