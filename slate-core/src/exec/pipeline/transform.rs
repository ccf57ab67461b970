use slate_query::{
    pipeline::{Redact, ReplaceRoot},
    projection::Projection,
    raw::Doc,
};

use crate::{
    Result,
    exec::{BoxedRows, Rows},
    interrupt::Interrupt,
};

/// Documents that are each made from one document of the input, in one reused buffer.
pub(crate) struct TransformRows<'v> {
    input: BoxedRows<'v>,
    transform: Transform,
    row: Vec<u8>,
    has_row: bool,
    interrupt: Interrupt,
}

/// Makes a document from another one.
pub(super) enum Transform {
    Project(Projection),
    Redact(Redact),
    ReplaceRoot(ReplaceRoot),
}

impl Transform {
    /// Replaces the content of `out` by the new document. Returns `false` if `$redact` prunes the document.
    fn apply(&self, document: Doc<'_>, out: &mut Vec<u8>) -> Result<bool> {
        match self {
            Self::Project(projection) => projection.apply(document, None, out)?,
            Self::Redact(redact) => return Ok(redact.apply(document, out)?),
            Self::ReplaceRoot(replace) => replace.apply(document, out)?,
        }
        Ok(true)
    }
}

impl<'v> TransformRows<'v> {
    pub(super) fn new(input: BoxedRows<'v>, transform: Transform, interrupt: Interrupt) -> Self {
        Self { input, transform, row: Vec::new(), has_row: false, interrupt }
    }
}

impl Rows for TransformRows<'_> {
    fn park(&mut self) {
        self.input.park();
    }

    fn advance(&mut self) -> Result<bool> {
        self.has_row = false;
        while self.input.advance()? {
            let Some(document) = self.input.current() else { break };
            if self.transform.apply(document, &mut self.row)? {
                self.has_row = true;
                break;
            }
            self.interrupt.tick()?;
        }
        Ok(self.has_row)
    }

    fn current(&self) -> Option<Doc<'_>> {
        self.has_row.then(|| Doc::new(&self.row))
    }
}
