use super::{
    input::PatternInput,
    invalid, needs_pcre,
    translate::{Engine, Translator},
};
use crate::Result;

/// The groups of a pattern that have numbers.
#[derive(Default)]
pub(super) struct Groups {
    count: usize,
    names: Vec<(Box<str>, usize)>,
}

impl Groups {
    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn add(&mut self) {
        self.count = self.count.saturating_add(1);
    }

    pub(super) fn add_named(&mut self, name: &str) {
        self.add();
        self.names.push((name.into(), self.count));
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.names.iter().find(|(other, _)| **other == *name).map(|(_, number)| *number)
    }
}

impl Translator<'_> {
    /// Translates a backslash and a digit: a back-reference, or a character by its octal code.
    pub(super) fn numbered_reference(&mut self, first: char) -> Result<()> {
        let mut ahead = self.input.copy();
        let digits = format!("{first}{}", ahead.digits(10, 9));
        let number = digits.parse().unwrap_or(usize::MAX);
        if digits.len() == 1 || matches!(first, '8' | '9') || number <= self.groups.count() {
            self.input = ahead;
            return self.reference(number);
        }
        let digits = format!("{first}{}", self.input.digits(8, 2));
        self.code(&digits)
    }

    /// Translates a reference by `\k` or `\g`.
    pub(super) fn named_reference(&mut self, letter: char) -> Result<()> {
        let malformed = || invalid(&format!("\\{letter} is not followed by a name or a number"));
        let name = if self.input.eat("{") {
            self.input.until("}")
        } else if letter == 'g' && (self.input.ahead("<") || self.input.ahead("'")) {
            return Err(needs_pcre("recursion"));
        } else if letter == 'g' {
            let sign = ["-", "+", ""].into_iter().find(|sign| self.input.eat(sign)).unwrap_or_default();
            let digits = self.input.digits(10, 9);
            let number = self.number(&format!("{sign}{digits}")).ok_or_else(malformed)?;
            return self.reference(number);
        } else if self.input.eat("<") {
            self.input.until(">")
        } else if self.input.eat("'") {
            self.input.until("'")
        } else {
            None
        };
        let name = name.filter(|name| !name.is_empty()).ok_or_else(malformed)?;
        let number = if letter == 'g' { self.number(name) } else { None };
        let number = number.map_or_else(|| self.named(name), Ok)?;
        self.reference(number)
    }

    /// Fails if no group has this number; only when translating for the backtracking engine, when all groups are known.
    pub(super) fn check(&self, number: usize) -> Result<()> {
        if self.engine == Engine::Backtracking && number > self.all_groups.count() {
            return Err(invalid("reference to non-existent subpattern"));
        }
        Ok(())
    }

    /// Returns the number of the group with this name; 1 while the groups are not known yet.
    ///
    /// # Errors
    /// 51091 if no group has the name.
    pub(super) fn named(&self, name: &str) -> Result<usize> {
        match self.engine {
            Engine::Linear => Ok(1),
            Engine::Backtracking => {
                self.all_groups.find(name).ok_or_else(|| invalid("reference to non-existent subpattern"))
            }
        }
    }

    /// Returns the number of a group that is written as `2`, or relative to the groups opened so far as `-1` or `+1`; `None` for another text.
    pub(super) fn number(&self, text: &str) -> Option<usize> {
        let count = self.groups.count();
        let digits = text.trim_start_matches(['-', '+']);
        let number: usize = digits.parse().ok().filter(|number| *number > 0)?;
        match text.strip_suffix(digits)? {
            "" => Some(number),
            "-" => count.checked_add(1)?.checked_sub(number).filter(|number| *number > 0),
            "+" => count.checked_add(number),
            _ => None,
        }
    }
}

/// Reads a name up to the character that ends it.
pub(super) fn name<'s>(input: &mut PatternInput<'s>, end: &str) -> Result<&'s str> {
    let malformed = || invalid("syntax error in subpattern name");
    let name = input.until(end).ok_or_else(malformed)?;
    let is_name = !name.is_empty()
        && !name.starts_with(|char: char| char.is_numeric())
        && name.chars().all(|char| char.is_alphanumeric() || char == '_');
    if is_name { Ok(name) } else { Err(malformed()) }
}
