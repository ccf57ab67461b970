use std::sync::Arc;

use slate_store::View;

use super::{RawRows, record::Record};
use crate::{Result, plan::Window};

/// Skips the first `skip` records and returns at most `left` of the others.
pub(crate) struct SliceRows<V: View> {
    input: RawRows<V>,
    skip: u64,
    left: u64,
    is_over: bool,
}

impl<V: View> SliceRows<V> {
    pub(super) fn new(input: RawRows<V>, window: Window) -> Self {
        Self { input, skip: window.skip, left: window.limit.unwrap_or(u64::MAX), is_over: false }
    }

    pub(super) fn advance(&mut self) -> Result<bool> {
        if self.left == 0 {
            // The input may still have a current row.
            self.is_over = true;
            return Ok(false);
        }
        if self.skip > 0 {
            self.skip = self.input.skip(self.skip)?;
        }
        while self.skip > 0 {
            self.skip -= 1;
            if !self.input.advance()? {
                self.left = 0;
                return Ok(false);
            }
        }
        self.left -= 1;
        self.input.advance()
    }

    #[inline]
    pub(super) fn stored(&self) -> Option<&[u8]> {
        if self.is_over { None } else { self.input.stored() }
    }

    #[inline]
    pub(super) fn current(&self) -> Option<Record<'_>> {
        if self.is_over { None } else { self.input.current() }
    }

    #[cfg(feature = "async")]
    pub(super) fn reads_one_record(&self) -> bool {
        self.skip == 0 && self.input.reads_one_record()
    }

    #[inline]
    pub(super) fn shared(&self) -> Option<Arc<[u8]>> {
        self.input.shared()
    }
}
