use bson::{Bson, Document};

use super::{
    extended, literal,
    number::{self, BigIntegers},
    window::Window,
};

/// Deepest nesting that is read. Documents nested more deeply cannot be stored.
const MAX_DEPTH: usize = 200;

/// Longest text of a value, in bytes: a document of 16 MiB is shorter in every notation.
pub(super) const LONGEST: usize = 256 << 20;

/// Maximum number of values in a document, including nested values: a document of 16 MiB has fewer. Bounds the memory
/// that short values take.
const MAX_VALUES: usize = 4 << 20;

/// Meaning of `{"$regex": …, "$options": …}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Regexes {
    /// The query operator, in filters.
    Operators,
    /// A regular expression, in data written by version 1 of extended JSON.
    Values,
}

/// The meaning of notations that a text alone does not determine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dialect {
    pub(crate) regexes: Regexes,
    pub(crate) big_integers: BigIntegers,
}

impl Dialect {
    /// Filters, updates and other arguments.
    pub(crate) const QUERY: Self = Self { regexes: Regexes::Operators, big_integers: BigIntegers::Refuse };
    /// Documents to store.
    pub(crate) const DATA: Self = Self { regexes: Regexes::Values, big_integers: BigIntegers::Refuse };
}

/// What is wrong with a text, and at which offset of the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) at: usize,
    pub(crate) why: String,
}

pub(super) type Result<T> = std::result::Result<T, Fault>;

/// Reads one value from the beginning of a window.
pub(crate) struct Parser<'w> {
    pub(super) window: &'w mut Window,
    /// Offset of the next byte.
    pub(super) at: usize,
    dialect: Dialect,
    depth: usize,
    values: usize,
}

impl<'w> Parser<'w> {
    pub(crate) fn new(window: &'w mut Window, dialect: Dialect) -> Self {
        Self { window, at: 0, dialect, depth: 0, values: 0 }
    }

    /// Offset of the next byte.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Returns the next byte; `None` at the end of the text, and [`LONGEST`] bytes after the beginning of the window.
    pub(super) fn byte(&mut self) -> Option<u8> {
        if self.at < LONGEST { self.window.byte(self.at) } else { None }
    }

    pub(super) fn fault(&self, why: impl Into<String>) -> Fault {
        Fault { at: self.at, why: why.into() }
    }

    fn found(&mut self, expected: &str) -> Fault {
        let rest = self.window.loaded(self.at);
        let rest = rest.get(..rest.len().min(4)).unwrap_or_default();
        let next = String::from_utf8_lossy(rest).chars().next();
        let found = match next {
            _ if self.at >= LONGEST => format!("more than {LONGEST} bytes"),
            None => "the end".into(),
            Some(character) => format!("{character:?}"),
        };
        self.fault(format!("expected {expected}, found {found}"))
    }

    /// Skips white space and comments.
    pub(crate) fn skip_blank(&mut self) {
        loop {
            match (self.byte(), self.window.byte(self.at + 1)) {
                (Some(b' ' | b'\t' | b'\r' | b'\n'), _) => self.at += 1,
                (Some(b'/'), Some(b'/')) => {
                    while self.byte().is_some_and(|byte| byte != b'\n') {
                        self.at += 1;
                    }
                }
                (Some(b'/'), Some(b'*')) => {
                    self.at += 2;
                    while self.byte().is_some()
                        && (self.byte(), self.window.byte(self.at + 1)) != (Some(b'*'), Some(b'/'))
                    {
                        self.at += 1;
                    }
                    self.at += 2;
                }
                _ => return,
            }
        }
    }

    /// Checks that only white space and comments follow.
    pub(crate) fn end(&mut self) -> Result<()> {
        self.skip_blank();
        if self.byte().is_none() { Ok(()) } else { Err(self.found("the end")) }
    }

    /// Reads a value. Fails beyond [`MAX_VALUES`] values or [`MAX_DEPTH`] levels.
    pub(crate) fn value(&mut self) -> Result<Bson> {
        self.skip_blank();
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(self.fault(format!("more than {MAX_VALUES} values in a document")));
        }
        match self.byte() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(|parser| parser.elements(b']').map(Bson::Array)),
            Some(b'"' | b'\'') => self.string().map(Bson::String),
            Some(b'/') => self.regex(),
            Some(b'-' | b'+' | b'.' | b'0'..=b'9') => self.number(),
            Some(byte) if begins_name(byte) => self.nested(Self::literal),
            _ => Err(self.found("a value")),
        }
    }

    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            return Err(self.fault(format!("more than {MAX_DEPTH} levels of nesting")));
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    /// Reads a document in braces. If it is extended JSON, returns the value that it stands for.
    fn object(&mut self) -> Result<Bson> {
        let begin = self.at;
        self.at += 1;
        let mut fields = Document::new();
        loop {
            self.skip_blank();
            if self.byte() == Some(b'}') {
                self.at += 1;
                break;
            }
            let place = self.at;
            let name = self.name()?;
            self.skip_blank();
            if self.byte() != Some(b':') {
                return Err(self.found("':' after a field name"));
            }
            self.at += 1;
            let value = self.value()?;
            if name.contains('\0') {
                return Err(Fault { at: place, why: "a field name contains a NUL byte".into() });
            }
            if fields.contains_key(&name) {
                return Err(Fault { at: place, why: format!("the field {name:?} is repeated") });
            }
            fields.insert(name, value);
            self.separator(b'}')?;
        }
        let typed = extended::typed(&fields, self.dialect.regexes);
        let typed = typed.map_err(|why| Fault { at: begin, why })?;
        Ok(typed.unwrap_or(Bson::Document(fields)))
    }

    fn name(&mut self) -> Result<String> {
        match self.byte() {
            Some(b'"' | b'\'') => self.string(),
            Some(byte) if continues_name(byte) => self.word(),
            _ => Err(self.found("a field name or '}'")),
        }
    }

    /// Reads an unquoted name.
    pub(super) fn word(&mut self) -> Result<String> {
        let begin = self.at;
        while self.byte().is_some_and(continues_name) {
            self.at += 1;
        }
        let word = String::from_utf8(self.window.bytes(begin, self.at).to_vec());
        word.map_err(|_| Fault { at: begin, why: "a name is not UTF-8".into() })
    }

    /// Reads values up to a closing bracket, which is consumed. The next byte is the opening one.
    pub(super) fn elements(&mut self, closing: u8) -> Result<Vec<Bson>> {
        self.at += 1;
        let mut values = Vec::new();
        loop {
            self.skip_blank();
            if self.byte() == Some(closing) {
                self.at += 1;
                return Ok(values);
            }
            values.push(self.value()?);
            self.separator(closing)?;
        }
    }

    /// Skips a comma. Without one, the closing bracket must follow.
    fn separator(&mut self, closing: u8) -> Result<()> {
        self.skip_blank();
        match self.byte() {
            Some(b',') => self.at += 1,
            Some(byte) if byte == closing => {}
            _ => return Err(self.found(&format!("',' or '{}'", char::from(closing)))),
        }
        Ok(())
    }

    fn number(&mut self) -> Result<Bson> {
        let begin = self.at;
        while self.byte().is_some_and(number::is_part) {
            self.at += 1;
        }
        let text = String::from_utf8_lossy(self.window.bytes(begin, self.at)).into_owned();
        number::parse(&text, self.dialect.big_integers).map_err(|why| Fault { at: begin, why })
    }

    /// Reads `/pattern/options`.
    fn regex(&mut self) -> Result<Bson> {
        let begin = self.at;
        // Within a character class a slash does not end the expression.
        let (mut escaped, mut class) = (false, false);
        loop {
            self.at += 1;
            match self.byte() {
                None | Some(b'\n') => {
                    return Err(Fault { at: begin, why: "a regular expression does not end on its line".into() });
                }
                Some(_) if escaped => escaped = false,
                Some(b'/') if !class => break,
                Some(byte) => {
                    escaped = byte == b'\\';
                    class = byte == b'[' || class && byte != b']';
                }
            }
        }
        let pattern = String::from_utf8_lossy(self.window.bytes(begin + 1, self.at)).replace("\\/", "/");
        self.at += 1;
        let options = self.word()?;
        extended::regex(&pattern, &options).map(Bson::RegularExpression).map_err(|why| Fault { at: begin, why })
    }

    /// Reads a constant or a call such as `ISODate("2024-02-29")`.
    fn literal(&mut self) -> Result<Bson> {
        let begin = self.at;
        let mut word = self.word()?;
        if word == "function" {
            let why = "JavaScript is not supported: a condition on several fields is an $expr";
            return Err(Fault { at: begin, why: why.into() });
        }
        if word == "new" {
            self.skip_blank();
            word = self.word()?;
        }
        // A function of a type, as in `Binary.createFromBase64("")`.
        while self.byte() == Some(b'.') {
            self.at += 1;
            word = format!("{word}.{}", self.word()?);
        }
        let after = self.at;
        self.skip_blank();
        let arguments = if self.byte() == Some(b'(') {
            Some(self.elements(b')')?)
        } else {
            self.at = after;
            None
        };
        literal::evaluate(&word, arguments.as_deref()).map_err(|why| Fault { at: begin, why })
    }
}

fn begins_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$' | 0x80..)
}

fn continues_name(byte: u8) -> bool {
    begins_name(byte) || byte.is_ascii_digit()
}

/// Returns the regular expression of a `Bson`, for tests.
#[cfg(test)]
pub(super) fn regex_value(pattern: &str, options: &str) -> Bson {
    Bson::RegularExpression(bson::Regex { pattern: pattern.try_into().unwrap(), options: options.try_into().unwrap() })
}
