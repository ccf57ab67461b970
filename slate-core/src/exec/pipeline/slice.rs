use slate_query::raw::Doc;
use slate_store::View;

use super::DocumentRows;
use crate::{Result, exec::Resources, interrupt::Interrupt, plan::Window};

/// Skips the first `skip` documents and returns at most `left` of the others.
pub(crate) struct SliceRows<V: View> {
    input: DocumentRows<V>,
    skip: u64,
    left: u64,
    has_row: bool,
    interrupt: Interrupt,
}

impl<V: View> SliceRows<V> {
    pub(super) fn new(input: DocumentRows<V>, window: Window, resources: &Resources) -> Self {
        let (skip, left) = (window.skip, window.limit.unwrap_or(u64::MAX));
        Self { input, skip, left, has_row: false, interrupt: resources.interrupt.clone() }
    }

    pub(super) fn advance(&mut self) -> Result<bool> {
        // After the last row the input must not be moved, because it could search without end for another row.
        self.has_row = self.left > 0;
        while self.has_row && self.skip > 0 {
            self.interrupt.tick()?;
            self.has_row = self.input.advance()?;
            self.skip -= 1;
        }
        self.has_row = self.has_row && self.input.advance()?;
        self.left = if self.has_row { self.left - 1 } else { 0 };
        Ok(self.has_row)
    }

    pub(super) fn current(&self) -> Option<Doc<'_>> {
        if self.has_row { self.input.current() } else { None }
    }
}
