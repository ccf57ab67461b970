use std::sync::Arc;

use slate_query::{
    Code,
    pipeline::{CurrentPartition, Partition, Results, Windows},
    raw::Doc,
};

use super::window_source::WindowSource;
use crate::{
    Error, ErrorKind, Result,
    exec::{
        Meter, Resources,
        rows::{BoxedRows, Rows},
    },
    interrupt::Interrupt,
    spill::{Memory, Spool, SpoolRows},
};

/// Documents with fields computed from the documents around them, partition by partition.
///
/// First reads a whole partition: holds its documents, in a temporary file beyond the memory limit, and accumulates the
/// outputs that have one value for the whole partition. Then returns each document with its results. A second reader of
/// the documents reads ahead as far as the windows reach, so that only the operands of these windows are in memory.
pub(crate) struct WindowRows<'v> {
    input: WindowSource<'v>,
    windows: Windows,
    current: CurrentPartition,
    /// Whether the current document of the input belongs to the next partition.
    is_ahead: bool,
    partition: Partition,
    /// `None` before the first partition.
    documents: Option<PartitionDocuments>,
    results: Results,
    row: Vec<u8>,
    has_row: bool,
    scratch: Vec<u8>,
    memory: Memory,
    interrupt: Interrupt,
    meter: Meter,
}

/// Two readers of the documents of a partition.
struct PartitionDocuments {
    /// The documents that are still to be returned.
    returned: SpoolRows,
    /// The documents that are not yet in the [`Partition`].
    ahead: SpoolRows,
}

impl<'v> WindowRows<'v> {
    pub(super) fn new(input: BoxedRows<'v>, windows: Windows, resources: &Resources, meter: Meter) -> Self {
        // One share is for the sort, the other for the partition.
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

    /// Writes the current document with its results.
    fn write(&mut self) -> Result<()> {
        let Self { windows, partition, results, interrupt, .. } = self;
        let Some(PartitionDocuments { returned, ahead }) = &mut self.documents else { return Ok(()) };
        while !results.is_ready(windows, partition)? {
            interrupt.tick()?;
            if !ahead.advance()? {
                partition.complete();
                break;
            }
            partition.push(windows, ahead.current().map_or(Doc::EMPTY, Doc::stored))?;
            check(partition, results, &self.memory)?;
        }
        let document = returned.current().map_or(Doc::EMPTY, Doc::stored);
        Ok(results.write(windows, partition, document, &mut self.scratch, &mut self.row)?)
    }

    /// Reads the documents of the next partition. Returns `false` if there is none.
    fn read_partition(&mut self) -> Result<bool> {
        self.documents = None;
        self.partition.clear();
        self.results = Results::new(&self.windows);
        let (mut documents, mut copy, mut is_empty) = (Spool::new(self.memory.clone()), Vec::new(), true);
        loop {
            self.interrupt.tick()?;
            if !std::mem::take(&mut self.is_ahead)
                && !self.input.advance(&self.windows, &mut self.interrupt, &mut self.meter)?
            {
                break;
            }
            let Some(document) = self.input.current() else { break };
            if self.current.enter(&self.windows, document)? && !is_empty {
                self.is_ahead = true;
                break;
            }
            is_empty = false;
            self.results.gather(&self.windows, document)?;
            check(&self.partition, &self.results, &self.memory)?;
            self.windows.read().copy_stored(document, &mut copy);
            documents.push(&copy)?;
        }
        self.meter.spilled(documents.spilled());
        let documents = Arc::new(documents.finish()?);
        self.documents =
            Some(PartitionDocuments { returned: SpoolRows::of(&documents), ahead: SpoolRows::of(&documents) });
        Ok(!is_empty)
    }
}

impl Rows for WindowRows<'_> {
    fn park(&mut self) {
        self.input.park();
    }

    fn advance(&mut self) -> Result<bool> {
        self.has_row = false;
        loop {
            self.interrupt.tick()?;
            if let Some(documents) = &mut self.documents
                && documents.returned.advance()?
            {
                self.write()?;
                self.has_row = true;
                return Ok(true);
            }
            if !self.read_partition()? {
                return Ok(false);
            }
        }
    }

    fn current(&self) -> Option<Doc<'_>> {
        self.has_row.then(|| Doc::new(&self.row))
    }
}

/// Fails with MongoDB's 5414201 if windows hold more than the memory limit, and more than [`LEAST`].
fn check(partition: &Partition, results: &Results, memory: &Memory) -> Result<()> {
    let most = memory.limit().max(LEAST);
    if partition.bytes() + results.bytes() <= most {
        return Ok(());
    }
    let message = format!("the values of a window of $setWindowFields need more than {most} bytes of memory");
    Err(Error::new(ErrorKind::TooLarge, Code(5_414_201), message))
}

/// The values of windows may use this much memory, in bytes, even if the limit is lower.
const LEAST: usize = 16 << 20;
