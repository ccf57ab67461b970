use slate_query::{
    pipeline::{Unwind, UnwoundRows},
    raw::{Doc, FieldName, Value},
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
    /// How many equal, consecutive documents the input's current document stands for.
    times: u64,
    interrupt: Interrupt,
}

impl<V: View> UnwindRows<V> {
    pub(super) fn new(input: DocumentRows<V>, unwind: Unwind, resources: &Resources) -> Self {
        Self {
            input,
            unwind,
            rows: UnwoundRows::default(),
            has_row: false,
            times: 0,
            interrupt: resources.interrupt.clone(),
        }
    }

    pub(super) fn advance(&mut self) -> Result<bool> {
        Ok(self.advance_with(|input| input.advance().map(u64::from))? > 0)
    }

    /// Like [`DocumentRows::advance_run`].
    pub(super) fn advance_run(&mut self) -> Result<u64> {
        self.advance_with(DocumentRows::advance_run)
    }

    fn advance_with(&mut self, advance: impl Fn(&mut DocumentRows<V>) -> Result<u64>) -> Result<u64> {
        self.interrupt.tick()?;
        self.has_row = self.has_row && self.rows.advance(&self.unwind);
        while !self.has_row {
            self.interrupt.tick()?;
            self.times = advance(&mut self.input)?;
            let Some(document) = self.input.current().filter(|_| self.times > 0) else { return Ok(0) };
            self.has_row = self.rows.begin(&self.unwind, document);
        }
        Ok(self.times)
    }

    /// Calls `visit` with each document of the input, the name of the unwound field and each of its elements, instead
    /// of building a document for each element. If the stage does more than that, reads nothing and returns `false`.
    pub(super) fn visit_elements(
        &mut self,
        mut visit: impl FnMut(Doc<'_>, &FieldName, Value<'_>, u64) -> Result<()>,
    ) -> Result<bool> {
        let Some(name) = self.unwind.plain_field() else { return Ok(false) };
        loop {
            self.interrupt.tick()?;
            let times = self.input.advance_run()?;
            let Some(document) = self.input.current().filter(|_| times > 0) else { return Ok(true) };
            for element in self.unwind.elements(document) {
                self.interrupt.tick()?;
                visit(document, name, element, times)?;
            }
        }
    }

    pub(super) fn current(&self) -> Option<Doc<'_>> {
        self.has_row.then(|| Doc::new(self.rows.current()))
    }
}
