use std::sync::Arc;

use slate_query::raw::Doc;

use super::rows::{Record, RecordRows, Rows};
use crate::{Result, metrics::Spilled, plan::Window};

/// Skip and limit: skips the first `skip` rows and returns at most `left` of the others.
pub(crate) struct SliceRows<I> {
    input: I,
    skip: u64,
    left: u64,
    has_row: bool,
}

impl<I: Rows> SliceRows<I> {
    pub(super) fn new(input: I, window: Window) -> Self {
        Self { input, skip: window.skip, left: window.limit.unwrap_or(u64::MAX), has_row: false }
    }

    /// Skips the rows before the window. Returns `false` if the input has no more rows.
    #[inline(never)]
    fn skip_rows(&mut self) -> Result<bool> {
        self.skip = self.input.skip(self.skip)?;
        while self.skip > 0 {
            self.input.want(self.left.saturating_add(self.skip));
            self.skip -= 1;
            if !self.input.advance()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    #[inline]
    fn advance_with(&mut self, advance: impl FnOnce(&mut I, u64) -> Result<u64>) -> Result<u64> {
        // After the last row the input must not be moved, because it could search without end for another row.
        let mut rows = 0;
        if self.left > 0 && (self.skip == 0 || self.skip_rows()?) {
            self.input.want(self.left);
            rows = advance(&mut self.input, self.left)?;
        }
        self.has_row = rows > 0;
        self.left = if self.has_row { self.left.saturating_sub(rows) } else { 0 };
        Ok(rows)
    }
}

impl<I: Rows> Rows for SliceRows<I> {
    #[inline]
    fn advance(&mut self) -> Result<bool> {
        Ok(self.advance_with(|input, _| input.advance().map(u64::from))? > 0)
    }

    fn advance_run(&mut self, most: u64) -> Result<u64> {
        self.advance_with(|input, left| input.advance_run(left.min(most)))
    }

    #[inline]
    fn current(&self) -> Option<Doc<'_>> {
        if self.has_row { self.input.current() } else { None }
    }

    #[inline]
    fn shared(&self) -> Option<Arc<[u8]>> {
        if self.has_row { self.input.shared() } else { None }
    }

    #[cfg(feature = "async")]
    fn reads_one_record(&self) -> bool {
        self.skip == 0 && self.input.reads_one_record()
    }

    fn spilled(&self) -> Spilled {
        self.input.spilled()
    }
}

impl<I: RecordRows> RecordRows for SliceRows<I> {
    #[inline]
    fn record(&self) -> Option<Record<'_>> {
        if self.has_row { self.input.record() } else { None }
    }
}
