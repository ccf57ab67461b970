use std::sync::Arc;

use slate_query::raw::Doc;

use super::{
    meter::Meter,
    rows::{Record, RecordRows, Rows},
};
use crate::Result;

/// Measures the time and the rows of a node. Nodes are wrapped in it only for execution statistics.
pub(crate) struct MeasuredRows<I> {
    input: I,
    /// One meter per drawn node; a slice can be drawn as two nodes.
    meters: Vec<Meter>,
}

impl<I> MeasuredRows<I> {
    /// Opens the rows, and measures the time that this takes.
    pub(super) fn open(mut meters: Vec<Meter>, open: impl FnOnce(&Meter) -> Result<I>) -> Result<Self> {
        let unread = Meter::default();
        let meter = meters.last().unwrap_or(&unread);
        let start = meter.start();
        let input = open(meter)?;
        meters.iter_mut().for_each(|meter| meter.stop(start));
        Ok(Self { input, meters })
    }

    /// Moves the input by `advance`, which returns the number of rows, and adds the rows and the time to the meters.
    fn measure(&mut self, advance: impl FnOnce(&mut I) -> Result<u64>) -> Result<u64> {
        let start = self.meters.first().map(Meter::start);
        let rows = advance(&mut self.input)?;
        if let Some(start) = start {
            self.meters.iter_mut().for_each(|meter| meter.moved_by(start, rows));
        }
        Ok(rows)
    }
}

impl<I: Rows> Rows for MeasuredRows<I> {
    fn park(&mut self) {
        self.input.park();
    }

    fn advance(&mut self) -> Result<bool> {
        Ok(self.measure(|input| input.advance().map(u64::from))? > 0)
    }

    fn advance_run(&mut self, most: u64) -> Result<u64> {
        self.measure(|input| input.advance_run(most))
    }

    fn skip(&mut self, rows: u64) -> Result<u64> {
        let skipped = self.measure(|input| Ok(rows - input.skip(rows)?))?;
        Ok(rows - skipped)
    }

    fn current(&self) -> Option<Doc<'_>> {
        self.input.current()
    }

    fn want(&mut self, rows: u64) {
        self.input.want(rows);
    }

    fn shared(&self) -> Option<Arc<[u8]>> {
        self.input.shared()
    }
}

impl<I: RecordRows> RecordRows for MeasuredRows<I> {
    fn record(&self) -> Option<Record<'_>> {
        self.input.record()
    }
}
