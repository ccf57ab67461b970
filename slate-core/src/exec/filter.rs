use std::sync::Arc;

use slate_query::{filter::Filter, raw::Doc};

use super::rows::{Record, RecordRows, Rows};
use crate::Result;

/// Passes on the rows that match. A rejected row is neither copied nor decoded.
pub(crate) struct FilterRows<I> {
    input: I,
    filter: Filter,
    /// Whether evaluating the filter can fail.
    can_fail: bool,
}

impl<I: Rows> FilterRows<I> {
    pub(super) fn new(input: I, filter: Filter) -> Self {
        let can_fail = filter.can_fail();
        Self { input, filter, can_fail }
    }

    #[inline(never)]
    fn advance_fallible(&mut self, most: u64) -> Result<u64> {
        loop {
            let times = self.input.advance_run(most)?;
            let Some(document) = self.input.current().filter(|_| times > 0) else { return Ok(0) };
            if self.filter.evaluate(document)? {
                return Ok(times);
            }
        }
    }
}

impl<I: Rows> Rows for FilterRows<I> {
    #[inline]
    fn advance(&mut self) -> Result<bool> {
        if self.can_fail {
            return Ok(self.advance_fallible(1)? > 0);
        }
        while self.input.advance()? {
            if self.input.current().is_some_and(|document| self.filter.matches(document)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn advance_run(&mut self, most: u64) -> Result<u64> {
        if self.can_fail {
            return self.advance_fallible(most);
        }
        loop {
            let times = self.input.advance_run(most)?;
            if times == 0 || self.input.current().is_some_and(|document| self.filter.matches(document)) {
                return Ok(times);
            }
        }
    }

    #[inline]
    fn current(&self) -> Option<Doc<'_>> {
        self.input.current()
    }

    #[inline]
    fn want(&mut self, rows: u64) {
        self.input.want(rows);
    }

    #[inline]
    fn shared(&self) -> Option<Arc<[u8]>> {
        self.input.shared()
    }
}

impl<I: RecordRows> RecordRows for FilterRows<I> {
    #[inline]
    fn record(&self) -> Option<Record<'_>> {
        self.input.record()
    }
}
