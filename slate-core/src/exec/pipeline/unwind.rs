use slate_query::{
    pipeline::{Unwind, UnwoundRows},
    raw::Doc,
};

use crate::{
    Result,
    exec::{
        Resources,
        rows::{BoxedRows, Rows},
    },
    interrupt::Interrupt,
};

/// The rows of `$unwind`: a document for each element of an array.
pub(crate) struct UnwindRows<'v> {
    input: BoxedRows<'v>,
    unwind: Unwind,
    rows: UnwoundRows,
    has_row: bool,
    /// How many equal, consecutive documents the input's current document stands for.
    times: u64,
    interrupt: Interrupt,
}

impl<'v> UnwindRows<'v> {
    pub(super) fn new(input: BoxedRows<'v>, unwind: Unwind, resources: &Resources) -> Self {
        Self {
            input,
            unwind,
            rows: UnwoundRows::default(),
            has_row: false,
            times: 0,
            interrupt: resources.interrupt.clone(),
        }
    }
}

impl Rows for UnwindRows<'_> {
    fn park(&mut self) {
        self.input.park();
    }

    fn advance(&mut self) -> Result<bool> {
        Ok(self.advance_run(1)? > 0)
    }

    fn advance_run(&mut self, most: u64) -> Result<u64> {
        // With a limit the input moves by single documents, because the limit can end between two elements of one
        // array.
        let most = if most == u64::MAX { most } else { 1 };
        self.interrupt.tick()?;
        self.has_row = self.has_row && self.rows.advance(&self.unwind);
        while !self.has_row {
            self.interrupt.tick()?;
            self.times = self.input.advance_run(most)?;
            let Some(document) = self.input.current().filter(|_| self.times > 0) else { return Ok(0) };
            self.has_row = self.rows.begin(&self.unwind, document);
        }
        Ok(self.times)
    }

    fn current(&self) -> Option<Doc<'_>> {
        self.has_row.then(|| Doc::new(self.rows.current()))
    }
}
