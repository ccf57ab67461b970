use slate_query::raw::Doc;
use slate_store::View;

use super::DocumentRows;
use crate::{Result, exec::meter::Meter};

/// Measures the time and the rows of a node of the document tier. Nodes are wrapped in it only for execution statistics.
pub(crate) struct MeasuredRows<V: View> {
    rows: DocumentRows<V>,
    /// One meter per drawn node; a slice can be drawn as two nodes.
    meters: Vec<Meter>,
}

impl<V: View> MeasuredRows<V> {
    pub(super) fn new(rows: DocumentRows<V>, meters: Vec<Meter>) -> Self {
        Self { rows, meters }
    }

    pub(super) fn advance(&mut self) -> Result<bool> {
        let start = self.meters.first().map(Meter::start);
        let more = self.rows.advance()?;
        if let Some(start) = start {
            self.meters.iter_mut().for_each(|meter| meter.moved(start, more));
        }
        Ok(more)
    }

    pub(super) fn current(&self) -> Option<Doc<'_>> {
        self.rows.current()
    }
}
