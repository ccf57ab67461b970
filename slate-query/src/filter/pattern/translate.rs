use std::fmt::Write;

use super::{class, escape, input::Input, invalid, needs_pcre};
use crate::Result;

/// Translates a pattern from PCRE's notation to the engine's.
///
/// # Errors
/// 51091 for constructs that the engine does not support, by name, and for invalid patterns.
pub(super) fn translate(source: &str, options: &str) -> Result<String> {
    let has = |flag| options.contains(flag);
    let modes = Modes { multiline: has('m'), extended: has('x') };
    let mut translator = Translator {
        input: Input::new(source),
        out: String::with_capacity(source.len() + 16),
        modes,
        outer: Vec::new(),
        last: Last::Nothing,
        letters: Letters::Ascii,
    };
    for flag in ['i', 's'].into_iter().filter(|&flag| has(flag)) {
        let _ = write!(translator.out, "(?{flag})");
    }
    translator.run()?;
    Ok(translator.out)
}

/// The modes that the translation implements itself. The engine implements the others.
#[derive(Clone, Copy)]
struct Modes {
    multiline: bool,
    extended: bool,
}

/// What `\w`, `\d`, `\s`, `\b` and the POSIX classes match.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Letters {
    /// ASCII only: PCRE's default.
    Ascii,
    /// All of Unicode: `(*UCP)`.
    Unicode,
}

/// What precedes the current position, as a quantifier sees it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Nothing,
    Item,
    Quantifier,
}

struct Translator<'s> {
    input: Input<'s>,
    out: String,
    modes: Modes,
    /// The saved modes of the enclosing groups.
    outer: Vec<Modes>,
    last: Last,
    letters: Letters,
}

/// Matches the end of the text, or before a newline at its end.
const END: &str = r"(?:\n?\z)";

impl Translator<'_> {
    fn run(&mut self) -> Result<()> {
        loop {
            if self.input.eat("(*UCP)") {
                self.letters = Letters::Unicode;
            } else if !self.input.eat("(*UTF8)") && !self.input.eat("(*UTF)") {
                break;
            }
        }
        while let Some(char) = self.input.next() {
            match char {
                '\\' => self.escape()?,
                '[' => {
                    class::translate(&mut self.input, self.letters, &mut self.out)?;
                    self.item();
                }
                '(' => self.group()?,
                ')' => {
                    self.modes = self.outer.pop().ok_or_else(|| invalid("unmatched closing parenthesis"))?;
                    self.out.push(')');
                    self.item();
                }
                '|' => {
                    self.out.push('|');
                    self.last = Last::Nothing;
                }
                '^' if self.modes.multiline => self.assertion("(?m:^)"),
                '^' => self.assertion(r"\A"),
                '$' if self.modes.multiline => self.assertion("(?m:$)"),
                '$' => self.assertion(END),
                '.' => {
                    self.out.push('.');
                    self.item();
                }
                '*' | '+' | '?' => self.quantifier(char.encode_utf8(&mut [0; 4]))?,
                '{' => match self.input.counted() {
                    Some(counted) => self.quantifier(&counted)?,
                    None => self.literal('{'),
                },
                '#' if self.modes.extended => while self.input.next().is_some_and(|char| char != '\n') {},
                space if self.modes.extended && is_pattern_space(space) => {}
                literal => self.literal(literal),
            }
        }
        if self.outer.is_empty() { Ok(()) } else { Err(invalid("missing closing parenthesis")) }
    }

    fn item(&mut self) {
        self.last = Last::Item;
    }

    fn assertion(&mut self, assertion: &str) {
        self.out.push_str(assertion);
        self.item();
    }

    fn literal(&mut self, char: char) {
        escape::push_literal(char, &mut self.out);
        self.last = Last::Item;
    }

    fn quantifier(&mut self, quantifier: &str) -> Result<()> {
        match (self.last, quantifier) {
            (Last::Nothing, _) => return Err(invalid("quantifier does not follow a repeatable item")),
            (Last::Quantifier, "+") => return Err(needs_pcre("a possessive quantifier")),
            (Last::Quantifier, "?") => {
                self.out.push('?');
                self.last = Last::Item;
                return Ok(());
            }
            (Last::Item | Last::Quantifier, _) => {}
        }
        self.out.push_str(quantifier);
        self.last = Last::Quantifier;
        Ok(())
    }

    fn escape(&mut self) -> Result<()> {
        if self.input.eat("Q") {
            while !self.input.is_empty() && !self.input.eat("\\E") {
                if let Some(char) = self.input.next() {
                    self.literal(char);
                }
            }
            return Ok(());
        }
        match escape::read(&mut self.input, self.letters)? {
            escape::Escape::Literal(char) => self.literal(char),
            escape::Escape::Class(class) => {
                let _ = write!(self.out, "(?-i:[{class}])");
                self.item();
            }
            escape::Escape::Property(property) => {
                self.out.push_str(&property);
                self.item();
            }
            escape::Escape::Other('A' | 'G') => self.assertion(r"\A"),
            escape::Escape::Other('z') => self.assertion(r"\z"),
            escape::Escape::Other('Z') => self.assertion(END),
            escape::Escape::Other('b') if self.letters == Letters::Unicode => self.assertion(r"\b"),
            escape::Escape::Other('B') if self.letters == Letters::Unicode => self.assertion(r"\B"),
            escape::Escape::Other('b') => self.assertion(r"(?-u:\b)"),
            escape::Escape::Other('B') => self.assertion(r"(?-u:\B)"),
            escape::Escape::Other('R') => self.assertion(r"(?:\r\n|[\n\x0b\f\r\x{85}\x{2028}\x{2029}])"),
            escape::Escape::Other('N') => self.assertion(r"[^\n]"),
            escape::Escape::Other('E') => {}
            escape::Escape::Other('k' | 'g' | '1'..='9') => return Err(needs_pcre("a back-reference")),
            escape::Escape::Other(other @ ('K' | 'X' | 'C')) => return Err(needs_pcre(&format!("\\{other}"))),
            escape::Escape::Other(other) => {
                return Err(invalid(&format!("unrecognized character follows \\: {other}")));
            }
        }
        Ok(())
    }

    /// Translates what follows an opening parenthesis.
    fn group(&mut self) -> Result<()> {
        if self.input.eat("*") {
            return Err(needs_pcre("a verb such as (*COMMIT)"));
        }
        if !self.input.eat("?") {
            return self.open();
        }
        let named = self.input.eat("P<") || self.input.eat("'");
        if named || self.input.peek() == Some('<') && !self.input.ahead("<=") && !self.input.ahead("<!") {
            // Captures are used by number, so names are dropped.
            let (_, quoted) = (self.input.eat("<"), '\'');
            loop {
                match self.input.next() {
                    Some('>') => break,
                    Some(char) if char == quoted => break,
                    Some(char) if char.is_alphanumeric() || char == '_' => {}
                    _ => return Err(invalid("syntax error in subpattern name")),
                }
            }
            return self.open();
        }
        let refused = [
            ("=", "lookahead"),
            ("!", "lookahead"),
            ("<=", "lookbehind"),
            ("<!", "lookbehind"),
            (">", "an atomic group"),
            ("|", "a branch reset group"),
            ("(", "a conditional group"),
            ("P=", "a back-reference"),
            ("P>", "recursion"),
            ("&", "recursion"),
            ("R", "recursion"),
            ("+", "recursion"),
            ("C", "a callout"),
        ];
        if let Some((_, construct)) = refused.iter().find(|(start, _)| self.input.ahead(start)) {
            return Err(needs_pcre(construct));
        }
        if self.input.peek().is_some_and(|char| char.is_ascii_digit()) {
            return Err(needs_pcre("recursion"));
        }
        if self.input.eat("#") {
            while self.input.next().ok_or_else(|| invalid("missing ) after (?# comment"))? != ')' {}
            return Ok(());
        }
        self.flags()
    }

    /// Translates modes within a pattern: `(?i)` for the rest of the group, `(?i:…)` for its own group.
    fn flags(&mut self) -> Result<()> {
        let outer = self.modes;
        let (mut on, mut off, mut value) = (String::new(), String::new(), true);
        loop {
            match self.input.next().ok_or_else(|| invalid("missing closing parenthesis"))? {
                '-' => value = false,
                '^' => {
                    self.modes = Modes { multiline: false, extended: false };
                    off.push_str("is");
                }
                'm' => self.modes.multiline = value,
                'x' => self.modes.extended = value,
                flag @ ('i' | 's' | 'U') => {
                    off.retain(|other| other != flag);
                    if value { on.push(flag) } else { off.push(flag) }
                }
                'J' | 'n' => {}
                end @ (')' | ':') => {
                    let flags = if off.is_empty() { on } else { format!("{on}-{off}") };
                    if end == ')' {
                        // The engine does not accept an empty list of flags.
                        if !flags.is_empty() {
                            let _ = write!(self.out, "(?{flags})");
                        }
                        self.last = Last::Nothing;
                    } else {
                        let _ = write!(self.out, "(?{flags}:");
                        self.outer.push(outer);
                        self.last = Last::Nothing;
                    }
                    return Ok(());
                }
                _ => return Err(invalid("unrecognized character after (? or (?-")),
            }
        }
    }

    fn open(&mut self) -> Result<()> {
        self.out.push('(');
        self.outer.push(self.modes);
        self.last = Last::Nothing;
        Ok(())
    }
}

/// Returns whether the extended mode ignores the character.
fn is_pattern_space(char: char) -> bool {
    matches!(char, ' ' | '\t'..='\r' | '\u{85}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}')
}
