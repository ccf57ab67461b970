/// Where one stands among rows of which there is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Position {
    #[default]
    Before,
    On,
    After,
}

impl Position {
    /// Moves to the next row; `false` after the last.
    pub(super) fn advance(&mut self) -> bool {
        *self = if *self == Self::Before { Self::On } else { Self::After };
        self.is_on()
    }

    pub(super) fn is_on(self) -> bool {
        self == Self::On
    }
}
