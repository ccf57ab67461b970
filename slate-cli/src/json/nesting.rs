/// Tracks open brackets and strings, byte by byte, in a text that need not be valid.
#[derive(Debug, Default)]
pub(crate) struct Nesting {
    open: Vec<u8>,
    string: Option<OpenString>,
    /// The last byte outside strings that is not white space.
    last: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OpenString {
    quote: u8,
    escaped: bool,
}

impl Nesting {
    pub(crate) fn feed(&mut self, byte: u8) {
        match &mut self.string {
            Some(string) if string.escaped => string.escaped = false,
            Some(string) if byte == b'\\' => string.escaped = true,
            Some(string) if byte == string.quote => {
                self.last = byte;
                self.string = None;
            }
            Some(_) => {}
            None if byte.is_ascii_whitespace() => {}
            None => {
                self.last = byte;
                match byte {
                    b'"' | b'\'' => self.string = Some(OpenString { quote: byte, escaped: false }),
                    b'{' | b'[' => self.open.push(byte),
                    b'}' => self.close(b'{'),
                    b']' => self.close(b'['),
                    _ => {}
                }
            }
        }
    }

    /// Closes a bracket and all unclosed ones inside it. Ignores a bracket that closes nothing.
    fn close(&mut self, opener: u8) {
        if let Some(place) = self.open.iter().rposition(|open| *open == opener) {
            self.open.truncate(place);
        }
    }

    pub(crate) fn in_string(&self) -> bool {
        self.string.is_some()
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Returns whether `next` starts another document: a brace where a field name, a comma or an end must be.
    pub(crate) fn breaks_off_at(&self, next: u8) -> bool {
        let value_may_follow = match self.last {
            b',' => self.open.last() != Some(&b'{'),
            b':' | b'[' | b'(' | 0 => true,
            _ => false,
        };
        next == b'{' && !self.in_string() && !value_may_follow
    }
}
