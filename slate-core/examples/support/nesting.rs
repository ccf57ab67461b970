//! Finds the end of a document in a JSON text without parsing it.

/// Tracks open brackets and strings, byte by byte.
#[derive(Debug, Default)]
pub(crate) struct Nesting {
    open: Vec<u8>,
    string: Option<Escape>,
    /// The last byte outside strings that is not white space.
    last: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Escape {
    No,
    Next,
}

impl Nesting {
    pub(crate) fn feed(&mut self, byte: u8) {
        match (self.string, byte) {
            (Some(Escape::Next), _) => self.string = Some(Escape::No),
            (Some(Escape::No), b'\\') => self.string = Some(Escape::Next),
            (Some(Escape::No), b'"') | (None, b'\n' | b'\r' | b'\t' | b' ') => self.string = None,
            (Some(Escape::No), _) => {}
            (None, byte) => {
                self.last = byte;
                match byte {
                    b'"' => self.string = Some(Escape::No),
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

    /// Returns whether `next` starts another document: a brace where a field name must be.
    pub(crate) fn breaks_off_at(&self, next: u8) -> bool {
        next == b'{' && !self.in_string() && self.last == b',' && self.open.last() == Some(&b'{')
    }
}
