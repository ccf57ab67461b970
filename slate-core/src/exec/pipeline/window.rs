use slate_query::{
    Code,
    pipeline::{CurrentPartition, Partition, Results, Windows},
    raw::Doc,
};
use slate_store::View;

use super::{DocumentRows, window_source::WindowSource};
use crate::{
    Error, ErrorKind, Result,
    exec::{Resources, meter::Meter},
    interrupt::Interrupt,
    spill::{Memory, Spool, SpoolRows},
};

/// Documents with fields computed from the documents around them, partition by partition.
///
/// A partition is read twice. First the operands and sort keys of its documents are gathered, and their kept fields are held, beyond
/// the memory limit in a temporary file. Then each document is returned with its results.
pub(crate) struct WindowRows<V: View> {
    input: WindowSource<V>,
    windows: Windows,
    current: CurrentPartition,
    /// Whether the current document of the input belongs to the next partition.
    is_ahead: bool,
    partition: Partition,
    /// The documents of the partition that are still to be returned.
    documents: Option<SpoolRows>,
    results: Results,
    row: Vec<u8>,
    has_row: bool,
    scratch: Vec<u8>,
    memory: Memory,
    interrupt: Interrupt,
    meter: Meter,
}

impl<V: View> WindowRows<V> {
    pub(super) fn new(input: DocumentRows<V>, windows: Windows, resources: &Resources, meter: Meter) -> Self {
        // One share for the sort, one for the partition.
        let memory = resources.memory.shared_by(2);
        let input = WindowSource::new(input, &windows, &memory);
        let results = Results::new(&windows);
        Self {
            input,
            windows,
            current: CurrentPartition::default(),
            is_ahead: false,
            partition: Partition::default(),
            documents: None,
            results,
            row: Vec::new(),
            has_row: false,
            scratch: Vec::new(),
            memory,
            interrupt: resources.interrupt.clone(),
            meter,
        }
    }

    pub(super) fn advance(&mut self) -> Result<bool> {
        self.has_row = false;
        loop {
            self.interrupt.tick()?;
            if let Some(documents) = &mut self.documents
                && documents.advance()?
            {
                let document = documents.current().unwrap_or_default();
                let (windows, partition) = (&self.windows, &self.partition);
                self.results.write(windows, partition, Doc::new(document), &mut self.scratch, &mut self.row)?;
                self.has_row = true;
                return Ok(true);
            }
            if !self.read_partition()? {
                return Ok(false);
            }
        }
    }

    pub(super) fn current(&self) -> Option<Doc<'_>> {
        self.has_row.then(|| Doc::new(&self.row))
    }

    /// Reads the documents of the next partition. Returns `false` if there is none.
    fn read_partition(&mut self) -> Result<bool> {
        self.documents = None;
        self.partition.clear();
        self.results = Results::new(&self.windows);
        let mut documents = Spool::new(self.memory.clone());
        let mut copy = Vec::new();
        loop {
            self.interrupt.tick()?;
            if !std::mem::take(&mut self.is_ahead)
                && !self.input.advance(&self.windows, &mut self.interrupt, &mut self.meter)?
            {
                break;
            }
            let Some(document) = self.input.current() else { break };
            if self.current.enter(&self.windows, document)? && !self.partition.is_empty() {
                self.is_ahead = true;
                break;
            }
            self.partition.push(&self.windows, document)?;
            self.windows.kept().copy(document, &mut copy);
            documents.push(&copy)?;
            if self.partition.bytes() > self.memory.limit().max(LEAST) {
                let message = format!(
                    "the values of a partition of $setWindowFields need more than {} bytes of memory",
                    self.memory.limit().max(LEAST)
                );
                return Err(Error::new(ErrorKind::TooLarge, Code(5_414_201), message));
            }
        }
        self.documents = Some(documents.into_rows()?);
        Ok(!self.partition.is_empty())
    }
}

/// The values of a partition may use this much memory at any limit.
const LEAST: usize = 16 << 20;
