/// The pattern that is left to read.
pub(super) struct Input<'s> {
    rest: &'s str,
}

impl<'s> Input<'s> {
    pub(super) fn new(source: &'s str) -> Self {
        Self { rest: source }
    }

    /// The same place, to look further ahead from.
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

    /// Takes `text` where it comes next.
    pub(super) fn eat(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Takes what stands before `end`, and `end`; nothing where `end` does not come.
    pub(super) fn until(&mut self, end: &str) -> Option<&'s str> {
        let (inside, rest) = self.rest.split_once(end)?;
        self.rest = rest;
        Some(inside)
    }

    /// Takes up to `most` characters that are digits to this base.
    pub(super) fn digits(&mut self, base: u32, most: usize) -> &'s str {
        let length = self.rest.bytes().take(most).take_while(|byte| char::from(*byte).is_digit(base)).count();
        let (digits, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.rest = rest;
        digits
    }

    /// Takes the rest of a counted repetition, behind its brace, and gives it whole: `{2}`, `{2,}`, `{2,3}`. Anything
    /// else is no repetition: the brace stands for itself.
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
