use std::sync::Arc;

use slate_query::filter::Filter;
use slate_store::View;

use super::{RawRows, record::Record};
use crate::Result;

/// Filters records. A rejected record is neither copied nor decoded.
pub(crate) struct FilterRows<V: View> {
    input: RawRows<V>,
    filter: Filter,
    /// Whether evaluating the filter can fail.
    computes: bool,
}

impl<V: View> FilterRows<V> {
    pub(super) fn new(input: RawRows<V>, filter: Filter) -> Self {
        let computes = filter.computes();
        Self { input, filter, computes }
    }

    #[inline]
    pub(super) fn advance(&mut self) -> Result<bool> {
        if self.computes {
            return self.advance_computed();
        }
        let filter = &self.filter;
        let matches = |record: Record<'_>| filter.matches(record.document());
        // The most common input has its own loop without a call per record.
        if let RawRows::Scan(rows) = &mut self.input {
            return rows.advance_to(matches);
        }
        while self.input.advance()? {
            if self.input.current().is_some_and(matches) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    #[inline(never)]
    fn advance_computed(&mut self) -> Result<bool> {
        while self.input.advance()? {
            let Some(record) = self.input.current() else { break };
            if self.filter.evaluate(record.document())? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    #[inline]
    pub(super) fn current(&self) -> Option<Record<'_>> {
        self.input.current()
    }

    #[inline]
    pub(super) fn stored(&self) -> Option<&[u8]> {
        self.input.stored()
    }

    #[inline]
    pub(super) fn shared(&self) -> Option<Arc<[u8]>> {
        self.input.shared()
    }
}
