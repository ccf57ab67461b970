use std::fmt::Write;

use super::{
    Use, class,
    escape::{self, Escape},
    grapheme, group,
    input::PatternInput,
    invalid, needs_pcre,
    prefix::{self, Decides, Prefix},
    reference::Groups,
    scope::{Growth, Kind, Length, Modes, OpenGroup},
};
use crate::Result;

/// A pattern in the notation of the engine that runs it.
pub(super) struct Translation {
    pub(super) text: String,
    pub(super) engine: Engine,
    pub(super) prefix: Option<Prefix>,
    /// How the work of the backtracking engine grows with the text.
    pub(super) growth: Growth,
}

/// The engine that runs a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    /// Its time is linear in the text. It has no lookaround, back-references and atomic groups.
    Linear,
    Backtracking,
}

/// Translates a pattern from PCRE's notation to that of the linear engine. A pattern that contains a construct which only
/// the backtracking engine has is translated a second time, to the notation of that engine.
///
/// # Errors
/// 51091 for constructs that no engine supports, by name, and for invalid patterns.
pub(super) fn translate(source: &str, options: &str, wanted: Use) -> Result<Translation> {
    let mut linear = Translator::new(source, options, Engine::Linear, wanted);
    linear.run()?;
    let at = linear.backtracks_at.or_else(|| (linear.begins_lines && prefix::can_be_empty(&linear.out)).then_some(0));
    let Some(at) = at else {
        let prefix = prefix::prefix(&linear.out);
        return Ok(Translation { text: linear.out, engine: Engine::Linear, prefix, growth: Growth::CONSTANT });
    };
    // What precedes the first such construct on the top level is a complete expression.
    let head = linear.out.get(..at).filter(|_| linear.scope.lengths.is_empty());
    let prefix = head.and_then(prefix::prefix).filter(|prefix| !prefix.text.is_empty());
    let prefix = prefix.map(|prefix| Prefix { decides: Decides::Some, ..prefix });
    let mut full = Translator::new(source, options, Engine::Backtracking, wanted);
    full.all_groups = linear.groups;
    full.run()?;
    Ok(Translation { text: full.out, engine: Engine::Backtracking, prefix, growth: full.scope.growth })
}

/// What `\w`, `\d`, `\s`, `\b` and the POSIX classes match.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Letters {
    /// ASCII only: PCRE's default.
    Ascii,
    /// All of Unicode: `(*UCP)`.
    Unicode,
}

/// The kind of the part before the current position, which decides how a quantifier is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    Nothing,
    Item,
    /// A quantifier that `+` makes possessive and `?` lazy.
    Quantifier,
    /// A possessive or lazy quantifier.
    Finished,
}

pub(super) struct Translator<'s> {
    pub(super) input: PatternInput<'s>,
    pub(super) out: String,
    pub(super) engine: Engine,
    wanted: Use,
    /// The group being read, or the whole pattern.
    pub(super) scope: OpenGroup,
    /// The enclosing groups and the whole pattern.
    pub(super) outer: Vec<OpenGroup>,
    pub(super) last: Last,
    /// Where the last item starts in `out`.
    pub(super) start: usize,
    letters: Letters,
    /// The groups that have been opened.
    pub(super) groups: Groups,
    /// All groups of the pattern; known when it is translated for the second time.
    pub(super) all_groups: Groups,
    /// Where in `out` the first item of the whole pattern starts that only the backtracking engine can match.
    backtracks_at: Option<usize>,
    /// Whether `^` matches at the start of a line somewhere.
    begins_lines: bool,
}

/// Matches the end of the text, or before a newline at its end. The linear engine consumes the newline.
const END: [&str; 2] = [r"(?:\n?\z)", r"(?=\n?\z)"];

/// Matches the start of the text, or after a newline within it. The linear engine matches after a newline at its end, too.
const LINE_START: [&str; 2] = [r"(?m:^)", r"(?:\A|(?<=\n)(?!\z))"];

const WORD_BOUNDARY: [&str; 2] =
    [r"(?-u:\b)", "(?-i:(?<=[0-9A-Za-z_])(?![0-9A-Za-z_])|(?<![0-9A-Za-z_])(?=[0-9A-Za-z_]))"];

/// The linear engine would match `(?-u:\B)` alone between the bytes of a character.
const NO_WORD_BOUNDARY: [&str; 2] =
    [r"(?:(?:\b|\B)(?-u:\B))", "(?-i:(?<=[0-9A-Za-z_])(?=[0-9A-Za-z_])|(?<![0-9A-Za-z_])(?![0-9A-Za-z_]))"];

const LINE_BREAK: [&str; 2] =
    [r"(?:\r\n|[\n\x0b\f\r\x{85}\x{2028}\x{2029}])", r"(?>\r\n|[\n\x0b\x0c\r\x{85}\x{2028}\x{2029}])"];

impl<'s> Translator<'s> {
    fn new(source: &'s str, options: &str, engine: Engine, wanted: Use) -> Self {
        let has = |flag| options.contains(flag);
        let mut out = String::with_capacity(source.len() + 16);
        for flag in ['i', 's'].into_iter().filter(|&flag| has(flag)) {
            let _ = write!(out, "(?{flag})");
        }
        Self {
            input: PatternInput::new(source),
            start: out.len(),
            out,
            engine,
            wanted,
            scope: OpenGroup::pattern(Modes { multiline: has('m'), extended: has('x') }),
            outer: Vec::new(),
            last: Last::Nothing,
            letters: Letters::Ascii,
            groups: Groups::default(),
            all_groups: Groups::default(),
            backtracks_at: None,
            begins_lines: false,
        }
    }

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
                    self.begin(Length::ONE);
                    class::translate(&mut self.input, self.letters, &mut self.out)?;
                }
                '(' => group::open(self)?,
                ')' => self.close()?,
                '|' => {
                    self.scope.end_branch();
                    if self.scope.has_too_many_branches() {
                        return Err(invalid("conditional subpattern contains more than two branches"));
                    }
                    self.out.push('|');
                    self.last = Last::Nothing;
                }
                '^' if self.scope.modes.multiline => {
                    self.begins_lines = true;
                    self.assertion(LINE_START);
                }
                '^' => self.assertion([r"\A"; 2]),
                '$' if self.scope.modes.multiline => self.assertion(["(?m:$)"; 2]),
                '$' => self.end(),
                '.' => self.item(Length::ONE, "."),
                '*' | '+' | '?' => self.quantifier(char.encode_utf8(&mut [0; 4]))?,
                '{' => match self.input.counted() {
                    Some(counted) => self.quantifier(&counted)?,
                    None => self.literal('{'),
                },
                '#' if self.scope.modes.extended => while self.input.next().is_some_and(|char| char != '\n') {},
                space if self.scope.modes.extended && is_pattern_space(space) => {}
                literal => self.literal(literal),
            }
        }
        if self.outer.is_empty() { Ok(()) } else { Err(invalid("missing closing parenthesis")) }
    }

    /// Begins an item of this length.
    pub(super) fn begin(&mut self, length: Length) {
        self.start = self.out.len();
        if self.scope.ended {
            // The linear engine would consume the newline at the end of the text, and the item might need it.
            self.needs_backtracking();
        }
        self.scope.push(length);
        self.last = Last::Item;
    }

    /// Records that only the backtracking engine can match the last item.
    pub(super) fn needs_backtracking(&mut self) {
        let start = self.outer.get(1).unwrap_or(&self.scope).start;
        let at = if self.outer.is_empty() { self.start } else { start };
        self.backtracks_at = Some(self.backtracks_at.map_or(at, |first| first.min(at)));
    }

    fn item(&mut self, length: Length, text: &str) {
        self.begin(length);
        self.out.push_str(text);
    }

    /// Writes an assertion in the notation of the engine: the linear one, or the backtracking one.
    pub(super) fn assertion(&mut self, notations: [&str; 2]) {
        self.item(Length::ZERO, self.choose(notations));
    }

    fn choose<'t>(&self, [linear, backtracking]: [&'t str; 2]) -> &'t str {
        match self.engine {
            Engine::Linear => linear,
            Engine::Backtracking => backtracking,
        }
    }

    fn end(&mut self) {
        self.assertion(END);
        match self.wanted {
            // The newline would be a part of the text that is found.
            Use::Search => self.needs_backtracking(),
            Use::Test => self.scope.ended = true,
        }
    }

    fn literal(&mut self, char: char) {
        self.begin(Length::ONE);
        escape::push_literal(char, &mut self.out);
    }

    fn quantifier(&mut self, quantifier: &str) -> Result<()> {
        match (self.last, quantifier) {
            (Last::Nothing, _) => return Err(invalid("quantifier does not follow a repeatable item")),
            (Last::Quantifier, "+") => {
                self.needs_backtracking();
                self.out.push('+');
                self.last = Last::Finished;
                return Ok(());
            }
            (Last::Quantifier, "?") => {
                self.out.push('?');
                self.last = Last::Finished;
                return Ok(());
            }
            (Last::Item | Last::Quantifier | Last::Finished, _) if self.scope.is_item_empty() => {
                self.repeat_empty(quantifier);
                return Ok(());
            }
            // The backtracking engine accepts no quantifier after another one, so the repetition becomes a group.
            (Last::Quantifier | Last::Finished, _) => {
                self.out.insert_str(self.start, "(?:");
                self.out.push(')');
            }
            (Last::Item, _) => {}
        }
        if self.scope.ended && quantifier != "?" {
            self.needs_backtracking();
        }
        self.scope.repeat(quantifier);
        self.out.push_str(quantifier);
        self.last = Last::Quantifier;
        Ok(())
    }

    /// Repeats an item that matches only the empty text, such as lookaround: it is required once or not at all. The
    /// backtracking engine does not repeat such items.
    fn repeat_empty(&mut self, quantifier: &str) {
        let is_lazy = self.input.eat("?");
        let _is_possessive = !is_lazy && self.input.eat("+");
        if matches!(quantifier, "*" | "?") || quantifier.starts_with("{0") {
            self.out.insert_str(self.start, if is_lazy { "(?:|" } else { "(?:" });
            self.out.push_str(if is_lazy { ")" } else { "|)" });
        }
        self.last = Last::Finished;
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
            Escape::Literal(char) => self.literal(char),
            Escape::Class(class) => self.item(Length::ONE, &format!("(?-i:[{class}])")),
            Escape::Property(property) => self.item(Length::ONE, &property),
            Escape::Other('A') => self.assertion([r"\A"; 2]),
            Escape::Other('G') => match self.wanted {
                // A search for further matches starts after the last one.
                Use::Search => {
                    self.assertion([r"\A", r"\G"]);
                    self.needs_backtracking();
                }
                Use::Test => self.assertion([r"\A"; 2]),
            },
            Escape::Other('z') => self.assertion([r"\z"; 2]),
            Escape::Other('Z') => self.end(),
            Escape::Other('b') if self.letters == Letters::Unicode => self.assertion([r"\b"; 2]),
            Escape::Other('B') if self.letters == Letters::Unicode => self.assertion([r"\B"; 2]),
            Escape::Other('b') => self.assertion(WORD_BOUNDARY),
            Escape::Other('B') => self.assertion(NO_WORD_BOUNDARY),
            Escape::Other('R') => self.item(Length::VARIABLE, self.choose(LINE_BREAK)),
            Escape::Other('N') => self.item(Length::ONE, r"[^\n]"),
            Escape::Other('X') => {
                self.item(Length::VARIABLE, self.choose(["(?:)", grapheme::CLUSTER]));
                self.needs_backtracking();
                self.scope.read_whole();
            }
            Escape::Other('K') if self.is_in_assertion() => return Err(invalid(r"\K is not allowed in lookarounds")),
            Escape::Other('K') => {
                self.assertion(["(?:)", r"\K"]);
                self.needs_backtracking();
            }
            Escape::Other('E') => {}
            Escape::Other(letter @ ('k' | 'g')) => self.named_reference(letter)?,
            Escape::Other(digit @ '1'..='9') => self.numbered_reference(digit)?,
            Escape::Other('C') => return Err(needs_pcre("\\C")),
            Escape::Other(other) => {
                return Err(invalid(&format!("unrecognized character follows \\: {other}")));
            }
        }
        Ok(())
    }

    fn is_in_assertion(&self) -> bool {
        self.outer.iter().skip(1).chain([&self.scope]).any(|scope| scope.kind.is_assertion())
    }

    /// Writes a back-reference to the group with this number.
    pub(super) fn reference(&mut self, number: usize) -> Result<()> {
        self.check(number)?;
        self.begin(Length::VARIABLE);
        match self.engine {
            Engine::Linear => self.out.push_str("(?:)"),
            Engine::Backtracking => {
                let _ = write!(self.out, "\\k<{number}>");
            }
        }
        self.needs_backtracking();
        self.scope.read_whole();
        Ok(())
    }

    /// Writes a character that is given by its octal code.
    pub(super) fn code(&mut self, digits: &str) -> Result<()> {
        if let Escape::Literal(char) = escape::code_point(digits, 8)? {
            self.literal(char);
        }
        Ok(())
    }

    /// Opens a group: writes `opening`, and `closing` where the group ends.
    pub(super) fn enter(&mut self, kind: Kind, opening: &str, closing: &'static str) {
        self.begin(Length::ZERO);
        if self.engine == Engine::Backtracking || matches!(kind, Kind::Group) && opening != "(?>" {
            self.out.push_str(opening);
        } else {
            self.out.push_str("(?:");
        }
        let closing = if self.engine == Engine::Linear { ")" } else { closing };
        let inner = OpenGroup::group(kind, closing, self.start, self.scope.modes);
        self.outer.push(std::mem::replace(&mut self.scope, inner));
        if kind != Kind::Group || opening == "(?>" {
            self.needs_backtracking();
        }
        self.last = Last::Nothing;
    }

    fn close(&mut self) -> Result<()> {
        let outer = self.outer.pop().ok_or_else(|| invalid("unmatched closing parenthesis"))?;
        let inner = std::mem::replace(&mut self.scope, outer);
        let (start, closing, kind) = (inner.start, inner.closing, inner.kind);
        let ended = self.scope.take(inner)?;
        self.out.push_str(closing);
        self.start = start;
        self.scope.ended = ended;
        let is_condition = matches!(kind, Kind::Condition | Kind::ConditionBehind);
        self.last = if is_condition { Last::Nothing } else { Last::Item };
        Ok(())
    }
}

/// Returns whether the extended mode ignores the character.
fn is_pattern_space(char: char) -> bool {
    matches!(char, ' ' | '\t'..='\r' | '\u{85}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}')
}
