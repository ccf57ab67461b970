use super::{
    column::Column,
    frame::Frames,
    function::{Function, Operand, Running},
    parse::Windows,
};
use crate::{
    Result,
    pipeline::nested::put,
    raw::{Doc, OwnedValue, SmallBytes, Value},
};

/// The values that the window functions read from one partition. Values that neither the current document nor a later one needs are released.
#[derive(Debug, Default)]
pub struct Partition {
    documents: usize,
    is_complete: bool,
    /// The sort keys, if they are compared.
    keys: Column<SmallBytes>,
    /// The values of the first sort field, if they are read.
    values: Column<Option<OwnedValue>>,
    /// The operands of each output.
    columns: Vec<Column<Operand>>,
    bytes: usize,
}

impl Partition {
    /// Adds a document.
    ///
    /// # Errors
    /// The errors of the expressions.
    pub fn push(&mut self, windows: &Windows, document: Doc<'_>) -> Result<()> {
        self.documents += 1;
        if windows.compares_peers() {
            let mut key = Vec::new();
            windows.sort().map_or(Ok(()), |sort| sort.key(document, &mut key))?;
            let key = SmallBytes::from(key.as_slice());
            self.bytes += key_bytes(&key);
            self.keys.push(key);
        }
        if windows.reads_places() {
            let value = windows.sort_field().and_then(|path| path.get(document)).map(Value::to_owned);
            self.bytes += value_bytes(value.as_ref());
            self.values.push(value);
        }
        self.columns.resize_with(windows.outputs().len(), Column::default);
        let columns = windows.outputs().iter().zip(&mut self.columns).filter(|(output, _)| !output.is_whole());
        windows.bindings().within(document, |env| {
            for (output, column) in columns {
                let operand = output.function.operand(env)?;
                self.bytes += operand_bytes(&operand);
                column.push(operand);
            }
            Ok(())
        })
    }

    /// Ends the partition: all its documents were added.
    pub fn complete(&mut self) {
        self.is_complete = true;
    }

    /// Returns the memory that the partition uses, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Removes all documents.
    pub fn clear(&mut self) {
        self.documents = 0;
        self.is_complete = false;
        self.keys.clear();
        self.values.clear();
        self.columns.iter_mut().for_each(Column::clear);
        self.bytes = 0;
    }

    /// Returns the number of documents so far.
    pub(super) fn len(&self) -> usize {
        self.documents
    }

    pub(super) fn sort_value(&self, row: usize) -> Option<Value<'_>> {
        self.values.get(row)?.as_ref().map(OwnedValue::as_value)
    }

    /// Returns whether two documents are equal under the sort.
    pub(super) fn are_peers(&self, a: usize, b: usize) -> bool {
        self.keys.get(a).map(SmallBytes::as_slice) == self.keys.get(b).map(SmallBytes::as_slice)
    }

    /// Releases the values of the documents before `row`.
    fn release(&mut self, row: usize) {
        let Self { keys, values, columns, bytes, .. } = self;
        keys.release(row, |key| *bytes -= key_bytes(&key));
        values.release(row, |value| *bytes -= value_bytes(value.as_ref()));
        columns.iter_mut().for_each(|column| column.release(row, |operand| *bytes -= operand_bytes(&operand)));
    }
}

fn key_bytes(key: &SmallBytes) -> usize {
    key.as_slice().len() + size_of::<SmallBytes>()
}

fn value_bytes(value: Option<&OwnedValue>) -> usize {
    value.map_or(0, |value| value.as_value().bytes().len()) + size_of::<OwnedValue>()
}

fn operand_bytes(operand: &Operand) -> usize {
    operand.bytes() + size_of::<Operand>()
}

/// Computes the outputs of a partition's documents, one after the other.
///
/// First all documents are [gathered](Self::gather). Then, for each document, following documents are added to the [`Partition`]
/// until the document's results are [ready](Self::is_ready).
#[derive(Debug)]
pub struct Results {
    running: Vec<(Frames, Running)>,
    row: usize,
    /// The heap bytes of accumulators over the whole partition.
    heap: usize,
}

impl Results {
    /// Starts with the first document.
    pub fn new(windows: &Windows) -> Self {
        let running = windows.outputs().iter().map(|output| (Frames::default(), Running::of(output)));
        Self { running: running.collect(), row: 0, heap: 0 }
    }

    /// Adds a document to the accumulators over the whole partition.
    ///
    /// # Errors
    /// The errors of the expressions and accumulators.
    pub fn gather(&mut self, windows: &Windows, document: Doc<'_>) -> Result<()> {
        let Self { running, heap, .. } = self;
        windows.bindings().within(document, |env| {
            let mut outputs = windows.outputs().iter().zip(running);
            outputs.try_for_each(|(output, (_, running))| running.gather(&output.function, env, heap))
        })
    }

    /// Returns the memory that the results use, in bytes.
    pub fn bytes(&self) -> usize {
        self.heap + self.running.iter().map(|(_, running)| running.memory()).sum::<usize>()
    }

    /// Returns whether enough of the partition was read to compute the outputs of the next document. Otherwise the
    /// caller adds further documents or [completes](Partition::complete) the partition.
    ///
    /// # Errors
    /// The errors of the functions.
    pub fn is_ready(&self, windows: &Windows, partition: &Partition) -> Result<bool> {
        if partition.is_complete {
            return Ok(true);
        }
        let none = Column::default();
        let columns = partition.columns.iter().chain(std::iter::repeat(&none));
        for ((output, (_, running)), column) in windows.outputs().iter().zip(&self.running).zip(columns) {
            if !running.is_ready(output, partition, column, self.row)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes into `out` (cleared first) the [kept](Windows::kept) fields of the next document and its outputs.
    /// Releases the parts of the partition that later documents do not need. `scratch` is a buffer.
    ///
    /// # Errors
    /// The errors of the functions.
    pub fn write(
        &mut self,
        windows: &Windows,
        partition: &mut Partition,
        document: Doc<'_>,
        scratch: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        windows.kept().copy(document, out);
        let none = Column::default();
        let columns = partition.columns.iter().chain(std::iter::repeat(&none));
        let mut needed = self.row;
        for ((output, (frames, running)), column) in windows.outputs().iter().zip(&mut self.running).zip(columns) {
            let range = match output.function {
                // These functions use no window.
                Function::Rank(_) | Function::Shift { .. } | Function::Fill { .. } | Function::MovingAverage { .. } => {
                    0..0
                }
                Function::Accumulate(_) if output.is_whole() => 0..0,
                _ => frames.next(&output.frame, partition, self.row)?,
            };
            let value = running.value(output, partition, column, self.row, range)?;
            needed = needed.min(running.first_needed(output, frames.last(), self.row + 1));
            put(output.path.parts(), value.as_value(), scratch, out);
        }
        partition.release(needed);
        self.row += 1;
        Ok(())
    }
}
