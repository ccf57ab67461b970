/// What every match begins with, as far as it has been read.
pub(super) struct Prefix {
    state: State,
    text: String,
    /// Whether the last item read is the last character of `text`.
    open: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// At the pattern's very start.
    Start,
    /// Behind the anchor, with nothing but literals since.
    Literals,
    /// Something else has come; `text` stands.
    Stopped,
    /// Matches may begin otherwise.
    None,
}

impl Prefix {
    pub(super) fn new(ignores_case: bool) -> Self {
        Self { state: if ignores_case { State::None } else { State::Start }, text: String::new(), open: false }
    }

    /// An anchor has been read; [`Prefix::stop`] has been called for it.
    pub(super) fn anchor(&mut self) {
        if self.state == State::Stopped && self.text.is_empty() && !self.open {
            self.state = State::Literals;
        }
    }

    pub(super) fn literal(&mut self, char: char) {
        match self.state {
            State::Literals => {
                self.text.push(char);
                self.open = true;
            }
            State::Start => self.state = State::None,
            State::Stopped | State::None => self.open = false,
        }
    }

    /// An item has been read that is no literal.
    pub(super) fn stop(&mut self) {
        self.open = false;
        self.state = match self.state {
            State::Start | State::Literals | State::Stopped => State::Stopped,
            State::None => State::None,
        };
    }

    pub(super) fn quantifier(&mut self, quantifier: &str) {
        if self.state == State::Literals && !self.open {
            // The anchor itself is repeated, perhaps no times.
            self.state = State::None;
        } else if self.open && quantifier != "+" {
            self.text.pop();
        }
        self.stop();
    }

    /// An alternative begins: outside groups, matches may begin otherwise.
    pub(super) fn alternative(&mut self, outermost: bool) {
        self.stop();
        if outermost {
            self.state = State::None;
        }
    }

    pub(super) fn finish(self) -> Option<Box<str>> {
        (self.state != State::None && !self.text.is_empty()).then(|| self.text.into())
    }
}
