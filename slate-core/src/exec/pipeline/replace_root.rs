use slate_query::{pipeline::ReplaceRoot, raw::Doc};
use slate_store::View;

use super::DocumentRows;
use crate::Result;

/// Documents replaced by the value of an expression.
pub(crate) struct ReplaceRootRows<V: View> {
    input: DocumentRows<V>,
    replace: ReplaceRoot,
    row: Vec<u8>,
    has_row: bool,
}

impl<V: View> ReplaceRootRows<V> {
    pub(super) fn new(input: DocumentRows<V>, replace: ReplaceRoot) -> Self {
        Self { input, replace, row: Vec::new(), has_row: false }
    }

    pub(super) fn advance(&mut self) -> Result<bool> {
        self.has_row = false;
        if !self.input.advance()? {
            return Ok(false);
        }
        let Some(document) = self.input.current() else { return Ok(false) };
        self.replace.apply(document, &mut self.row)?;
        self.has_row = true;
        Ok(true)
    }

    pub(super) fn current(&self) -> Option<Doc<'_>> {
        self.has_row.then(|| Doc::new(&self.row))
    }
}
