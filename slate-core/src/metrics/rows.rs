use std::cell::Cell;

use slate_query::raw::Doc;

use super::Call;
use crate::{Result, exec::Rows};

/// The rows of a query, which counts them.
pub(crate) struct ObservedRows<R> {
    // Dropped before the call, which ends with them.
    rows: R,
    call: Call,
    /// Length of the current document, if it was read.
    length: Cell<usize>,
}

impl<R: Rows> ObservedRows<R> {
    pub(crate) fn new(rows: R, call: Call) -> Self {
        Self { rows, call, length: Cell::new(0) }
    }

    #[cold]
    #[inline(never)]
    fn advance_in_span(&mut self) -> Result<bool> {
        let _entered = self.call.enter();
        self.rows.advance()
    }
}

impl<R: Rows> Rows for ObservedRows<R> {
    #[inline]
    fn advance(&mut self) -> Result<bool> {
        self.call.add_bytes(self.length.take());
        let more = if self.call.is_traced() { self.advance_in_span() } else { self.rows.advance() };
        let more = self.call.checked(more);
        match more {
            Ok(true) => self.call.add_row(),
            Ok(false) | Err(_) => self.call.stop(),
        }
        more
    }

    #[inline]
    fn current(&self) -> Option<Doc<'_>> {
        let current = self.rows.current();
        self.length.set(current.map_or(0, |document| document.bytes().len()));
        current
    }

    #[cfg(feature = "async")]
    fn shared(&self) -> Option<std::sync::Arc<[u8]>> {
        let shared = self.rows.shared();
        let bytes = shared.as_deref().map(|stored| Doc::stored(stored).bytes());
        self.length.set(bytes.map_or(0, <[u8]>::len));
        shared
    }
}

impl<R> Drop for ObservedRows<R> {
    fn drop(&mut self) {
        self.call.add_bytes(self.length.take());
    }
}
