//! The parts of a written date: numbers, words and single characters.

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'t> {
    /// Digits.
    Number(&'t str),
    /// Letters.
    Word(&'t str),
    Symbol(char),
}

/// A position in a text. Copies save a position to return to.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Cursor<'t> {
    rest: &'t str,
}

impl<'t> Cursor<'t> {
    pub(in super::super) fn new(text: &'t str) -> Self {
        Self { rest: text }
    }

    /// Returns the text after the position.
    pub(in super::super) fn rest(&self) -> &'t str {
        self.rest
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns the next part and moves past it; `None` at the end.
    fn next(&mut self) -> Option<Token<'t>> {
        let first = self.rest.chars().next()?;
        let run = |is_in: fn(&char) -> bool| self.rest.chars().take_while(is_in).map(char::len_utf8).sum::<usize>();
        let (length, kind): (usize, fn(&'t str) -> Token<'t>) = if first.is_ascii_digit() {
            (run(char::is_ascii_digit), Token::Number)
        } else if first.is_ascii_alphabetic() {
            (run(char::is_ascii_alphabetic), Token::Word)
        } else {
            self.rest = self.rest.get(first.len_utf8()..)?;
            return Some(Token::Symbol(first));
        };
        let (part, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(kind(part))
    }

    /// Calls `read`. If it returns `None`, the position does not change.
    pub(super) fn try_read<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let mut ahead = *self;
        let found = read(&mut ahead)?;
        *self = ahead;
        Some(found)
    }

    /// Reads a number with at most `most_digits` digits. Returns it with its number of digits.
    pub(super) fn number(&mut self, most_digits: usize) -> Option<(i64, usize)> {
        self.try_read(|cursor| match cursor.next()? {
            Token::Number(digits) if digits.len() <= most_digits => Some((digits.parse().ok()?, digits.len())),
            _ => None,
        })
    }

    /// Reads a number with exactly this number of digits.
    pub(super) fn digits(&mut self, digits: usize) -> Option<i64> {
        self.try_read(|cursor| cursor.number(digits).filter(|(_, found)| *found == digits).map(|(number, _)| number))
    }

    /// Reads one of these characters.
    pub(super) fn symbol(&mut self, any: &[char]) -> Option<char> {
        self.try_read(|cursor| match cursor.next()? {
            Token::Symbol(symbol) if any.contains(&symbol) => Some(symbol),
            _ => None,
        })
    }

    /// Skips these characters.
    pub(super) fn skip(&mut self, any: &[char]) {
        while self.symbol(any).is_some() {}
    }

    /// Reads a word that `accept` recognizes in lower case.
    pub(super) fn word<T>(&mut self, accept: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        self.try_read(|cursor| match cursor.next()? {
            Token::Word(word) => accept(&word.to_ascii_lowercase()),
            _ => None,
        })
    }
}
