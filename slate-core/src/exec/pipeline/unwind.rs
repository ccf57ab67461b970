use slate_query::{
    pipeline::{Unwind, UnwoundRows},
    raw::Doc,
};
use slate_store::View;

use super::DocumentRows;
use crate::{Result, exec::Resources, interrupt::Interrupt};

/// A document for each element of an array.
pub(crate) struct UnwindRows<V: View> {
    input: DocumentRows<V>,
    unwind: Unwind,
    rows: UnwoundRows,
    has_row: bool,
    interrupt: Interrupt,
}

impl<V: View> UnwindRows<V> {
    pub(super) fn new(input: DocumentRows<V>, unwind: Unwind, resources: &Resources) -> Self {
        Self { input, unwind, rows: UnwoundRows::default(), has_row: false, interrupt: resources.interrupt.clone() }
    }

    pub(super) fn advance(&mut self) -> Result<bool> {
        self.interrupt.tick()?;
        self.has_row = self.has_row && self.rows.advance(&self.unwind);
        while !self.has_row && self.input.advance()? {
            self.interrupt.tick()?;
            let Some(document) = self.input.current() else { break };
            self.has_row = self.rows.begin(&self.unwind, document);
        }
        Ok(self.has_row)
    }

    pub(super) fn current(&self) -> Option<Doc<'_>> {
        self.has_row.then(|| Doc::new(self.rows.current()))
    }
}
