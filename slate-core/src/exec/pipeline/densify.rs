use slate_query::{
    pipeline::{DenseRows, Densify},
    raw::Doc,
};

use crate::{
    Error, Result,
    exec::{
        Resources,
        rows::{BoxedRows, Rows},
    },
    interrupt::Interrupt,
};

/// The documents of the input, and those that fill the gaps between them.
pub(crate) struct DensifyRows<'v> {
    input: BoxedRows<'v>,
    densify: Densify,
    rows: DenseRows,
    position: DensifyPosition,
    /// The added document.
    row: Vec<u8>,
    interrupt: Interrupt,
}

/// Which document is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DensifyPosition {
    /// A document of the input that is not read yet.
    Next,
    /// A document that is added before the current document of the input, which then follows.
    Before,
    /// The document after the current document of the input. The current document was returned.
    Passed,
    /// A document that is added after the last document of the input.
    After,
    End,
}

impl<'v> DensifyRows<'v> {
    pub(super) fn new(input: BoxedRows<'v>, densify: Densify, resources: &Resources) -> Self {
        Self {
            input,
            densify,
            rows: DenseRows::default(),
            position: DensifyPosition::Next,
            row: Vec::new(),
            interrupt: resources.interrupt.clone(),
        }
    }
}

impl Rows for DensifyRows<'_> {
    fn park(&mut self) {
        self.input.park();
    }

    fn advance(&mut self) -> Result<bool> {
        let Self { input, densify, rows, position, row, interrupt } = self;
        loop {
            interrupt.tick()?;
            match position {
                DensifyPosition::Next | DensifyPosition::Passed => {
                    *position = DensifyPosition::After;
                    if input.advance()? {
                        *position = DensifyPosition::Before;
                        let Some(document) = input.current() else { continue };
                        rows.begin(densify, document).map_err(Error::from)?;
                    } else if !rows.complete(densify) {
                        *position = DensifyPosition::End;
                    }
                }
                DensifyPosition::Before if rows.add(densify, row)? => return Ok(true),
                DensifyPosition::Before => {
                    rows.pass(densify)?;
                    *position = DensifyPosition::Passed;
                    return Ok(true);
                }
                DensifyPosition::After if rows.add(densify, row)? => return Ok(true),
                DensifyPosition::After if rows.complete(densify) => {}
                DensifyPosition::After => *position = DensifyPosition::End,
                DensifyPosition::End => return Ok(false),
            }
        }
    }

    fn current(&self) -> Option<Doc<'_>> {
        match self.position {
            DensifyPosition::Before | DensifyPosition::After => Some(Doc::new(&self.row)),
            DensifyPosition::Passed => self.input.current(),
            DensifyPosition::Next | DensifyPosition::End => None,
        }
    }
}
