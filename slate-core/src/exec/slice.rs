use std::sync::Arc;

use slate_store::View;

use super::{RawRows, rows::Record};
use crate::{Result, plan::Window};

/// The records after the first `skip`, at most `left` of them.
pub(crate) struct SliceRows<V: View> {
    input: RawRows<V>,
    skip: u64,
    left: u64,
    stands: Stands,
}

/// Where a slice stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stands {
    /// Before the first row, or on one: its input tells.
    Within,
    /// After the last, where the input may still stand on a row.
    After,
}

impl<V: View> SliceRows<V> {
    pub(super) fn new(input: RawRows<V>, window: Window) -> Self {
        Self { input, skip: window.skip, left: window.limit.unwrap_or(u64::MAX), stands: Stands::Within }
    }

    pub(super) fn advance(&mut self) -> Result<bool> {
        if self.left == 0 {
            self.stands = Stands::After;
            return Ok(false);
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
        match self.stands {
            Stands::Within => self.input.stored(),
            Stands::After => None,
        }
    }

    #[inline]
    pub(super) fn current(&self) -> Option<Record<'_>> {
        match self.stands {
            Stands::Within => self.input.current(),
            Stands::After => None,
        }
    }

    #[inline]
    pub(super) fn shared(&self) -> Option<Arc<[u8]>> {
        self.input.shared()
    }
}
