/// Reads the text of commands character by character, and tracks words, open brackets and open quotes.
///
/// Within brackets, texts in quotes, regular expressions and comments hide brackets and quotes as they do in documents.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scanner {
    /// Number of open brackets.
    depth: usize,
    inside: Inside,
    /// The last character outside quotes, regular expressions, comments and white space.
    last: char,
    in_word: bool,
}

/// The construct that contains the next character.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Inside {
    #[default]
    Plain,
    Quote {
        quote: char,
        escaped: bool,
    },
    /// After a slash that begins a comment or a regular expression, or is only a slash.
    Slash,
    Regex {
        escaped: bool,
        /// Within a character class, where a slash ends nothing.
        class: bool,
    },
    LineComment,
    BlockComment {
        /// Whether the last character can begin the end of the comment.
        star: bool,
    },
    /// A comment between words: `# …`.
    Remark,
}

/// The relation of a character to words: it is between two of them, or it begins or continues one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Between,
    Begins,
    Continues,
}

impl Scanner {
    /// Reads a character.
    pub(super) fn feed(&mut self, character: char) -> Step {
        match self.inside {
            Inside::Plain => return self.plain(character),
            Inside::Remark => {
                if character == '\n' {
                    self.inside = Inside::Plain;
                }
                return Step::Between;
            }
            Inside::Quote { escaped: true, quote } => self.inside = Inside::Quote { quote, escaped: false },
            Inside::Quote { quote, .. } if character == quote => {
                self.last = quote;
                self.inside = Inside::Plain;
            }
            Inside::Quote { quote, .. } => self.inside = Inside::Quote { quote, escaped: character == '\\' },
            Inside::Slash => {
                self.inside = match character {
                    '/' => Inside::LineComment,
                    '*' => Inside::BlockComment { star: false },
                    // Where a value can begin.
                    _ if ":,[(".contains(self.last) => Inside::Regex { escaped: false, class: false },
                    _ => Inside::Plain,
                };
                if matches!(self.inside, Inside::Regex { .. } | Inside::Plain) {
                    return self.feed(character);
                }
            }
            Inside::Regex { escaped, class } => {
                self.inside = match character {
                    // A regular expression cannot contain a line break.
                    '\n' => Inside::Plain,
                    _ if escaped => Inside::Regex { escaped: false, class },
                    '/' if !class => Inside::Plain,
                    _ => Inside::Regex {
                        escaped: character == '\\',
                        class: character == '[' || class && character != ']',
                    },
                };
                if self.inside == Inside::Plain {
                    self.last = '/';
                }
            }
            Inside::LineComment => {
                if character == '\n' {
                    self.inside = Inside::Plain;
                }
            }
            Inside::BlockComment { star: true } if character == '/' => self.inside = Inside::Plain,
            Inside::BlockComment { .. } => self.inside = Inside::BlockComment { star: character == '*' },
        }
        Step::Continues
    }

    fn plain(&mut self, character: char) -> Step {
        if character.is_whitespace() {
            self.in_word &= self.depth > 0;
            return if self.in_word { Step::Continues } else { Step::Between };
        }
        if !self.in_word && character == '#' {
            self.inside = Inside::Remark;
            return Step::Between;
        }
        let step = if self.in_word { Step::Continues } else { Step::Begins };
        self.in_word = true;
        match character {
            // Within a word a quote is an apostrophe.
            '"' | '\'' if self.depth > 0 || step == Step::Begins || self.last == '=' => {
                self.inside = Inside::Quote { quote: character, escaped: false };
            }
            // Outside brackets a slash separates the parts of a path.
            '/' if self.depth > 0 => {
                self.inside = Inside::Slash;
                return step;
            }
            '{' | '[' | '(' => self.depth += 1,
            '}' | ']' | ')' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        self.last = character;
        step
    }

    /// Returns whether a bracket or a quote is open.
    pub(super) fn is_open(&self) -> bool {
        self.depth > 0 || matches!(self.inside, Inside::Quote { .. })
    }
}
