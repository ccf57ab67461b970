use slate_query::{pipeline::Redact, raw::Doc};
use slate_store::View;

use super::DocumentRows;
use crate::{Result, interrupt::Interrupt};

/// Documents without the parts that an expression removes.
pub(crate) struct RedactRows<V: View> {
    input: DocumentRows<V>,
    redact: Redact,
    row: Vec<u8>,
    has_row: bool,
    interrupt: Interrupt,
}

impl<V: View> RedactRows<V> {
    pub(super) fn new(input: DocumentRows<V>, redact: Redact, interrupt: Interrupt) -> Self {
        Self { input, redact, row: Vec::new(), has_row: false, interrupt }
    }

    pub(super) fn advance(&mut self) -> Result<bool> {
        self.has_row = false;
        while !self.has_row {
            self.interrupt.tick()?;
            if !self.input.advance()? {
                return Ok(false);
            }
            let Some(document) = self.input.current() else { return Ok(false) };
            self.has_row = self.redact.apply(document, &mut self.row)?;
        }
        Ok(true)
    }

    pub(super) fn current(&self) -> Option<Doc<'_>> {
        self.has_row.then(|| Doc::new(&self.row))
    }
}
