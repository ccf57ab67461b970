/// The rest of the pattern being read.
pub(super) struct PatternInput<'s> {
    rest: &'s str,
}

impl<'s> PatternInput<'s> {
    pub(super) fn new(source: &'s str) -> Self {
        Self { rest: source }
    }

    /// Creates a copy at the same position, to look ahead with.
    pub(super) fn copy(&self) -> Self {
        Self { rest: self.rest }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let char = chars.next();
        self.rest = chars.as_str();
        char
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    pub(super) fn ahead(&self, text: &str) -> bool {
        self.rest.starts_with(text)
    }

    /// Consumes `text` if it comes next.
    pub(super) fn eat(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Consumes everything up to and including `end`, and returns what precedes `end`; consumes nothing if there is no
    /// `end`.
    pub(super) fn until(&mut self, end: &str) -> Option<&'s str> {
        let (inside, rest) = self.rest.split_once(end)?;
        self.rest = rest;
        Some(inside)
    }

    /// Consumes up to `most` digits of this base.
    pub(super) fn digits(&mut self, base: u32, most: usize) -> &'s str {
        let length = self.rest.bytes().take(most).take_while(|byte| char::from(*byte).is_digit(base)).count();
        let (digits, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.rest = rest;
        digits
    }

    /// Consumes the rest of a counted repetition after its opening brace and returns all of it: `{2}`, `{2,}`, `{2,3}`.
    /// Returns `None` for anything else, where the brace is a literal.
    pub(super) fn counted(&mut self) -> Option<String> {
        let (inside, rest) = self.rest.split_once('}')?;
        let (least, most) = inside.split_once(',').unwrap_or((inside, ""));
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if least.is_empty() || !is_number(least) || !is_number(most) {
            return None;
        }
        self.rest = rest;
        Some(format!("{{{inside}}}"))
    }
}
