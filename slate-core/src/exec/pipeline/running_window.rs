use slate_query::{
    pipeline::{CurrentPartition, RunningResults, Windows},
    raw::Doc,
};

use super::window_source::WindowSource;
use crate::{
    Result,
    exec::{
        Meter, Resources,
        rows::{BoxedRows, Rows},
    },
    interrupt::Interrupt,
};

/// Documents with fields computed from the documents up to them in their partition. Holds one document, unless the input must be sorted.
pub(crate) struct RunningWindowRows<'v> {
    input: WindowSource<'v>,
    windows: Windows,
    current: CurrentPartition,
    results: RunningResults,
    row: Vec<u8>,
    has_row: bool,
    interrupt: Interrupt,
    meter: Meter,
}

impl<'v> RunningWindowRows<'v> {
    pub(super) fn new(
        input: BoxedRows<'v>,
        windows: Windows,
        results: RunningResults,
        resources: &Resources,
        meter: Meter,
    ) -> Self {
        Self {
            input: WindowSource::new(input, &windows, &resources.memory),
            windows,
            current: CurrentPartition::default(),
            results,
            row: Vec::new(),
            has_row: false,
            interrupt: resources.interrupt.clone(),
            meter,
        }
    }
}

impl Rows for RunningWindowRows<'_> {
    fn park(&mut self) {
        self.input.park();
    }

    fn advance(&mut self) -> Result<bool> {
        self.interrupt.tick()?;
        self.has_row = false;
        if !self.input.advance(&self.windows, &mut self.interrupt, &mut self.meter)? {
            return Ok(false);
        }
        let Some(document) = self.input.current() else { return Ok(false) };
        if self.current.enter(&self.windows, document)? {
            self.results.restart();
        }
        self.results.write(&self.windows, document, &mut self.row)?;
        self.has_row = true;
        Ok(true)
    }

    fn current(&self) -> Option<Doc<'_>> {
        self.has_row.then(|| Doc::new(&self.row))
    }
}
