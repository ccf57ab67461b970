use std::io::{self, Read};

use bson::Document;

use super::{
    nesting::Nesting,
    parser::{Dialect, LONGEST, Parser},
    window::{Position, Window},
};

/// A document with the position of its first character, or what is wrong and where.
pub(crate) type PlacedDocument = (Position, Result<Document, String>);

/// Reads the documents of a text: one after the other, any number on a line or over several lines, or as elements of
/// arrays. Commas between them are accepted.
///
/// Only one document at a time is in memory. Unreadable text is reported once, and reading continues after it.
pub(crate) struct JsonDocuments {
    window: Window,
    dialect: Dialect,
    /// Where the array whose elements are being read begins.
    array: Option<Position>,
}

impl JsonDocuments {
    pub(crate) fn new(source: Box<dyn Read>, dialect: Dialect) -> Self {
        Self { window: Window::new(source), dialect, array: None }
    }

    fn entry(&mut self) -> io::Result<Option<PlacedDocument>> {
        loop {
            let mut parser = Parser::new(&mut self.window, self.dialect);
            parser.skip_blank();
            let blank = parser.at();
            self.window.consume(blank);
            let next = self.window.byte(0);
            // Returns the failure only after everything that was read before it.
            if next.is_none()
                && let Some(failure) = self.window.take_failure()
            {
                return Err(failure);
            }
            let here = self.window.position(0);
            match (next, self.array) {
                (None, None) => return Ok(None),
                (None, Some(_)) => {
                    self.array = None;
                    return Ok(Some((here, Err("an array does not end".into()))));
                }
                (Some(b','), _) => self.window.consume(1),
                (Some(b'['), None) => {
                    self.array = Some(here);
                    self.window.consume(1);
                }
                (Some(b']'), Some(_)) => {
                    self.array = None;
                    self.window.consume(1);
                }
                (Some(_), _) => return self.document(here).map(Some),
            }
        }
    }

    fn document(&mut self, here: Position) -> io::Result<PlacedDocument> {
        let mut parser = Parser::new(&mut self.window, self.dialect);
        let read = parser.value();
        let end = parser.at();
        let (at, why) = match read {
            Ok(bson::Bson::Document(document)) => {
                self.window.consume(end);
                return Ok((here, Ok(document)));
            }
            Ok(_) => {
                self.window.consume(end);
                return Ok((here, Err("expected a document".into())));
            }
            Err(fault) => (fault.at, fault.why),
        };
        let place = self.window.position(at);
        self.skip_unreadable();
        Ok((place, Err(why)))
    }

    /// Skips unreadable text. Its end is a guess: the bracket that closes it; the next brace if the text breaks off
    /// there; or a later line that begins with a brace and is indented no more than the unreadable text.
    fn skip_unreadable(&mut self) {
        let indentation = self.window.indentation();
        let (mut nesting, mut at, mut line) = (Nesting::default(), 0, None);
        while let Some(byte) = self.window.byte(at).filter(|_| at < LONGEST) {
            if byte == b'\n' && line.is_none() {
                line = self.next_line(at + 1, indentation);
            }
            let ends_here = if nesting.is_open() {
                nesting.breaks_off_at(byte)
            } else {
                // Text that does not begin with a bracket ends at the end of its line, or where a document can begin.
                at > 0 && !nesting.in_string() && matches!(byte, b',' | b']' | b'{' | b'\n')
            };
            if ends_here || (nesting.in_string() && byte == b'\n') {
                break;
            }
            nesting.feed(byte);
            at += 1;
            if matches!(byte, b'}' | b']') && !nesting.is_open() && !nesting.in_string() {
                return self.window.consume(at);
            }
        }
        match line {
            Some(line) => self.window.consume(line),
            None if !nesting.is_open() || nesting.breaks_off_at(b'{') => self.window.consume(at.max(1)),
            None => self.skip_to_line(at, indentation),
        }
    }

    /// Skips everything up to a line at which [`next_line`](Self::next_line) finds a document or the end of the array.
    fn skip_to_line(&mut self, at: usize, indentation: usize) {
        self.window.consume(at);
        loop {
            match self.window.byte(0) {
                None => return,
                Some(b'\n') => {
                    if let Some(line) = self.next_line(1, indentation) {
                        return self.window.consume(line);
                    }
                }
                Some(_) => {}
            }
            self.window.consume(1);
        }
    }

    /// Returns `at` if a `{` is there after at most `indentation` blanks, or, within an array, a `]` after none.
    fn next_line(&mut self, at: usize, indentation: usize) -> Option<usize> {
        let blanks = (0..=indentation).find(|blank| !matches!(self.window.byte(at + blank), Some(b' ' | b'\t')))?;
        match self.window.byte(at + blanks) {
            Some(b'{') => Some(at),
            Some(b']') if self.array.is_some() && blanks == 0 => Some(at),
            _ => None,
        }
    }
}

impl Iterator for JsonDocuments {
    type Item = io::Result<PlacedDocument>;

    fn next(&mut self) -> Option<Self::Item> {
        self.entry().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns line, column and field `a` of each document that is read; `None` for unreadable text.
    fn read(text: &str) -> Vec<(u64, u64, Option<i32>)> {
        let entries = JsonDocuments::new(Box::new(io::Cursor::new(text.to_owned().into_bytes())), Dialect::DATA);
        let field = |entry: io::Result<PlacedDocument>| {
            let (place, document) = entry.unwrap();
            (place.line, place.column, document.ok().map(|document| document.get_i32("a").unwrap_or_default()))
        };
        entries.map(field).collect()
    }

    #[test]
    fn documents_follow_each_other_in_every_form() {
        let expected = [Some(1), Some(2), Some(3)];
        for text in [
            "{\"a\": 1}\n{\"a\": 2}\n\n{\"a\": 3}",
            "{\"a\": 1} {\"a\": 2}{\"a\": 3}",
            "{\"a\": 1},\n{\"a\": 2},\n{\"a\": 3},",
            " [{\"a\": 1},{\"a\":\n2} , {\"a\": 3}]\n",
            "[{a: 1}] [{a: 2,},\n\n{a: 3},]",
            "{\n  \"a\": 1,\n  \"b\": [\n    {}\n  ]\n}\n{\n  'a': 2\n}\n// end\n{a: 3} /* { */",
        ] {
            assert_eq!(read(text).into_iter().map(|(_, _, a)| a).collect::<Vec<_>>(), expected, "{text}");
        }
        assert_eq!(read("[]"), []);
        assert_eq!(read(""), []);
    }

    #[test]
    fn a_malformed_document_does_not_affect_others() {
        assert_eq!(
            read("{\"a\": 1}\n\nnothing\n{\"a\": 2\n{\"a\": 3}\n{\"a\": \"x\n{\"a\": 4}\n{\"a\": 5"),
            [(1, 1, Some(1)), (3, 1, None), (5, 1, None), (5, 1, Some(3)), (6, 7, None), (7, 1, Some(4)), (8, 8, None)]
        );
    }

    #[test]
    fn a_malformed_element_does_not_affect_others() {
        assert_eq!(
            read("[{\"a\": 1}, {\"a\": }, 5, {\"a\": [2}, {\"b\": {\"c\": 3}, {\"a\": 4}]"),
            [(1, 2, Some(1)), (1, 18, None), (1, 21, None), (1, 32, None), (1, 51, None), (1, 51, Some(4))]
        );
        assert_eq!(
            read("[\n{\"a\": \"x},\n{\"a\": 2},\n{\"a\": 3}\n]"),
            [(2, 7, None), (3, 1, Some(2)), (4, 1, Some(3))]
        );
        assert_eq!(
            read("[\n  {\n    \"a\": oops,\n    \"b\": [\n      {\"a\": 7}\n    ]\n  },\n  {\n    \"a\": 2\n  }\n]"),
            [(3, 10, None), (8, 3, Some(2))]
        );
        assert_eq!(
            read("[\n  {\n    \"a\": 1\n    \"b\": \"x\n    {\"a\": 7}\n  },\n  {\n    \"a\": 2\n  }\n]"),
            [(4, 5, None), (7, 3, Some(2))]
        );
    }

    #[test]
    fn unreadable_text_beside_documents_is_reported_alone() {
        assert_eq!(read("x {\"a\": 1} y\n{\"a\": 2}"), [(1, 1, None), (1, 3, Some(1)), (1, 12, None), (2, 1, Some(2))]);
        assert_eq!(read("[[{\"a\": 1}], {\"a\": 2}]"), [(1, 2, None), (1, 14, Some(2))]);
        assert_eq!(read("]{\"a\": 2}"), [(1, 1, None), (1, 2, Some(2))]);
        assert_eq!(read("}}{\"a\": 2}"), [(1, 1, None), (1, 2, None), (1, 3, Some(2))]);
    }

    #[test]
    fn an_unterminated_array_is_reported() {
        assert_eq!(read("[{\"a\": 1}"), [(1, 2, Some(1)), (1, 10, None)]);
        assert_eq!(read("[{\"a\": 1}, {\"a\": 2"), [(1, 2, Some(1)), (1, 19, None), (1, 19, None)]);
    }

    #[test]
    fn strings_can_contain_brackets_and_quotes() {
        let text = r#"[{"a": 1, "s": "]}\"{["}, {'s': 'it\'s "}', "a": 2}]"#;
        assert_eq!(read(text), [(1, 2, Some(1)), (1, 27, Some(2))]);
    }

    #[test]
    fn nothing_is_changed_silently() {
        let why = |text: &str| super::super::document(text, Dialect::DATA).unwrap_err();
        assert_eq!(why("{\"a\": 1, \"a\": 2}"), "the field \"a\" is repeated (line 1, column 10)");
        assert!(why("{a: 123456789012345678901234567890}").contains("does not fit into 64 bits"));
        assert!(why("{a: \"\\ud800\"}").contains("an escape is no character"));
        assert!(why("{a: 1} {a: 2}").starts_with("expected the end, found '{'"));
    }

    #[test]
    fn columns_count_characters() {
        assert_eq!(read("{\"ä\": \"€\", x}"), [(1, 13, None)]);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_to_its_end(text in "[\\[\\]{}:,\"'a0 \n\\\\/(]{0,40}") {
            // The iterator ends, and reports an unreadable text as an item instead of failing.
            for entry in JsonDocuments::new(Box::new(io::Cursor::new(text.clone().into_bytes())), Dialect::DATA) {
                let _ = entry.unwrap();
            }
        }

        #[test]
        fn a_document_is_found_behind_any_line(line in "[\\[\\]{}:,\"'a0 \\\\]{0,30}") {
            let text = format!("{{b: 1}}\n{line}\n{{a: 5}}\n");
            let read = read(&text);
            // A comment or a longer value can contain the last line; nothing else hides it.
            let readable = read.iter().any(|(_, _, a)| *a == Some(5));
            proptest::prop_assert!(readable || line.contains('['), "{text}");
        }
    }
}
