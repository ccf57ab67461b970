use slate_query::{number::Number, raw::Doc};
use slate_store::View;

use super::DocumentRows;
use crate::{Result, interrupt::Interrupt};

/// Documents without fields, as many as the input has counted.
pub(crate) struct RepeatRows<V: View> {
    /// `None` once all of it was read.
    input: Option<DocumentRows<V>>,
    left: u64,
    has_row: bool,
    interrupt: Interrupt,
}

impl<V: View> RepeatRows<V> {
    pub(super) fn new(input: DocumentRows<V>, interrupt: Interrupt) -> Self {
        Self { input: Some(input), left: 0, has_row: false, interrupt }
    }

    pub(super) fn advance(&mut self) -> Result<bool> {
        self.interrupt.tick()?;
        let left = self.advance_run()?;
        self.left = left.saturating_sub(1);
        Ok(left > 0)
    }

    /// Moves past all remaining documents.
    pub(super) fn advance_run(&mut self) -> Result<u64> {
        if let Some(mut input) = self.input.take() {
            input.advance()?;
            let counted = input.current().and_then(|row| row.get("n")).and_then(Number::of).and_then(Number::to_i64);
            self.left = counted.and_then(|counted| u64::try_from(counted).ok()).unwrap_or_default();
        }
        let left = std::mem::take(&mut self.left);
        self.has_row = left > 0;
        Ok(left)
    }

    pub(super) fn current(&self) -> Option<Doc<'_>> {
        self.has_row.then_some(Doc::EMPTY)
    }
}
