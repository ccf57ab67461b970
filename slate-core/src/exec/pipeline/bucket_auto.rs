use slate_query::{
    pipeline::{BucketAuto, Buckets},
    raw::Doc,
};

use crate::{
    Result,
    exec::{
        Meter, Resources,
        rows::{BoxedRows, Rows},
    },
    interrupt::Interrupt,
    spill::Sorter,
};

/// Returns one document per bucket. Sorts the documents, in temporary files beyond the memory limit, and holds what one
/// bucket accumulates.
pub(crate) struct BucketAutoRows<'v> {
    /// `None` once all of it was read.
    input: Option<BoxedRows<'v>>,
    stage: BucketAuto,
    sorter: Sorter,
    /// `None` before the first and after the last bucket.
    buckets: Option<Buckets>,
    /// Whether the current document of the sorter begins the next bucket.
    is_ahead: bool,
    buffer: Vec<u8>,
    row: Vec<u8>,
    has_row: bool,
    interrupt: Interrupt,
    meter: Meter,
}

impl<'v> BucketAutoRows<'v> {
    pub(super) fn new(input: BoxedRows<'v>, stage: BucketAuto, resources: &Resources, meter: Meter) -> Self {
        Self {
            input: Some(input),
            stage,
            sorter: Sorter::new(resources.memory.clone(), u64::MAX),
            buckets: None,
            is_ahead: false,
            buffer: Vec::new(),
            row: Vec::new(),
            has_row: false,
            interrupt: resources.interrupt.clone(),
            meter,
        }
    }

    /// Reads and sorts the input. Returns its number of documents.
    fn read(&mut self, mut input: BoxedRows<'v>) -> Result<u64> {
        let mut documents = 0_u64;
        while input.advance()? {
            self.interrupt.tick()?;
            let Some(document) = input.current() else { break };
            let sorter = &mut self.sorter;
            self.stage.visit_key(document, &mut self.buffer, |key| {
                sorter.push(key, &documents.to_be_bytes(), document.bytes())
            })?;
            documents += 1;
        }
        self.sorter.finish(&mut self.interrupt)?;
        self.meter.spilled(self.sorter.spilled());
        Ok(documents)
    }
}

impl Rows for BucketAutoRows<'_> {
    fn park(&mut self) {
        self.sorter.park();
    }

    fn advance(&mut self) -> Result<bool> {
        self.has_row = false;
        if let Some(input) = self.input.take() {
            let documents = self.read(input)?;
            self.buckets = Some(self.stage.start(documents));
        }
        let Some(buckets) = &mut self.buckets else { return Ok(false) };
        loop {
            self.interrupt.tick()?;
            if !std::mem::take(&mut self.is_ahead) && !self.sorter.advance()? {
                break;
            }
            let Some(document) = self.sorter.payload() else { break };
            if !buckets.add(Doc::new(document), &mut self.buffer)? {
                self.is_ahead = true;
                break;
            }
        }
        let next = self.sorter.payload().filter(|_| self.is_ahead).map(Doc::new);
        self.has_row = buckets.finish(next, &mut self.row)?;
        if !self.is_ahead {
            self.buckets = None;
        }
        Ok(self.has_row)
    }

    fn current(&self) -> Option<Doc<'_>> {
        self.has_row.then(|| Doc::new(&self.row))
    }
}
