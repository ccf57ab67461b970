use slate_query::{projection::Projection, raw::Doc};
use slate_store::View;

use super::DocumentRows;
use crate::Result;

/// Projected documents, built in one reused buffer.
pub(crate) struct ProjectRows<V: View> {
    input: DocumentRows<V>,
    projection: Projection,
    row: Vec<u8>,
    has_row: bool,
}

impl<V: View> ProjectRows<V> {
    pub(super) fn new(input: DocumentRows<V>, projection: Projection) -> Self {
        Self { input, projection, row: Vec::new(), has_row: false }
    }

    pub(super) fn advance(&mut self) -> Result<bool> {
        self.has_row = false;
        if !self.input.advance()? {
            return Ok(false);
        }
        let Some(document) = self.input.current() else { return Ok(false) };
        self.projection.apply(document, None, &mut self.row)?;
        self.has_row = true;
        Ok(true)
    }

    pub(super) fn current(&self) -> Option<Doc<'_>> {
        self.has_row.then(|| Doc::new(&self.row))
    }
}
