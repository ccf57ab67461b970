//! Where in a JSON text a document ends, told without parsing it.

/// Follows a text byte by byte: which brackets are open, and whether it stands in a string.
#[derive(Debug, Default)]
pub(crate) struct Nesting {
    open: Vec<u8>,
    string: Option<Escape>,
    /// The last byte outside strings that is not blank.
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

    /// A bracket closes those that were opened after its own and never closed; one that closes none is passed over.
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

    /// Whether `next` cannot belong to this document and begins another: a brace where a field's name must stand.
    pub(crate) fn breaks_off_at(&self, next: u8) -> bool {
        next == b'{' && !self.in_string() && self.last == b',' && self.open.last() == Some(&b'{')
    }
}
