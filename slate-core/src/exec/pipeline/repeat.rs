use slate_query::{number::Number, raw::Doc};

use crate::{
    Result,
    exec::{BoxedRows, Rows},
    interrupt::Interrupt,
};

/// Documents without fields, as many as the input has counted.
pub(crate) struct RepeatRows<'v> {
    /// `None` once all of it was read.
    input: Option<BoxedRows<'v>>,
    left: u64,
    has_row: bool,
    interrupt: Interrupt,
}

impl<'v> RepeatRows<'v> {
    pub(super) fn new(input: BoxedRows<'v>, interrupt: Interrupt) -> Self {
        Self { input: Some(input), left: 0, has_row: false, interrupt }
    }
}

impl Rows for RepeatRows<'_> {
    fn advance(&mut self) -> Result<bool> {
        Ok(self.advance_run(1)? > 0)
    }

    fn advance_run(&mut self, most: u64) -> Result<u64> {
        self.interrupt.tick()?;
        if let Some(mut input) = self.input.take() {
            input.advance()?;
            let counted = input.current().and_then(|row| row.get("n")).and_then(Number::of).and_then(Number::to_i64);
            self.left = counted.and_then(|counted| u64::try_from(counted).ok()).unwrap_or_default();
        }
        let run = self.left.min(most);
        self.left -= run;
        self.has_row = run > 0;
        Ok(run)
    }

    fn current(&self) -> Option<Doc<'_>> {
        self.has_row.then_some(Doc::EMPTY)
    }
}
