use super::{
    frame::Frames,
    function::{Function, Operand, Running},
    parse::Windows,
};
use crate::{
    Code, Error, Result,
    pipeline::nested::set,
    raw::{Doc, OwnedValue, SmallBytes, Value},
};

/// What the functions read of the documents of one partition.
#[derive(Debug, Default)]
pub struct Partition {
    documents: usize,
    /// The sort keys, if they are compared.
    keys: Vec<SmallBytes>,
    /// The values of the first sort field, if they are read.
    values: Vec<Option<OwnedValue>>,
    /// The operands of each output.
    columns: Vec<Vec<Operand>>,
    bytes: usize,
}

impl Partition {
    /// Adds a document.
    ///
    /// # Errors
    /// Those of the expressions.
    pub fn push(&mut self, windows: &Windows, document: Doc<'_>) -> Result<()> {
        self.documents += 1;
        if windows.compares_peers() {
            let mut key = Vec::new();
            windows.sort().map_or(Ok(()), |sort| sort.key(document, &mut key))?;
            self.bytes += key.len() + size_of::<SmallBytes>();
            self.keys.push(key.as_slice().into());
        }
        if windows.reads_places() {
            let value = windows.sort_field().and_then(|path| path.get(document)).map(Value::to_owned);
            self.bytes += value.as_ref().map_or(0, |value| value.as_value().bytes().len()) + size_of::<OwnedValue>();
            self.values.push(value);
        }
        self.columns.resize_with(windows.outputs().len(), Vec::new);
        let columns = windows.outputs().iter().zip(&mut self.columns);
        windows.bindings().within(document, |env| {
            for (output, column) in columns {
                let operand = output.function.operand(env)?;
                self.bytes += operand.bytes() + size_of::<Operand>();
                column.push(operand);
            }
            Ok(())
        })
    }

    /// The number of documents.
    pub fn len(&self) -> usize {
        self.documents
    }

    /// Whether it has no documents.
    pub fn is_empty(&self) -> bool {
        self.documents == 0
    }

    /// The memory that it uses, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Removes all documents.
    pub fn clear(&mut self) {
        self.documents = 0;
        self.keys.clear();
        self.values.clear();
        self.columns.iter_mut().for_each(Vec::clear);
        self.bytes = 0;
    }

    pub(super) fn sort_value(&self, row: usize) -> Option<Value<'_>> {
        self.values.get(row)?.as_ref().map(OwnedValue::as_value)
    }

    /// Whether two documents are equal under the sort.
    pub(super) fn are_peers(&self, a: usize, b: usize) -> bool {
        self.keys.get(a).map(SmallBytes::as_slice) == self.keys.get(b).map(SmallBytes::as_slice)
    }
}

/// Computes the outputs of a partition's documents, one after the other.
#[derive(Debug)]
pub struct Results {
    running: Vec<(Frames, Running)>,
    row: usize,
}

impl Results {
    /// Starts with the first document.
    pub fn new(windows: &Windows) -> Self {
        let running = windows.outputs().iter().map(|output| (Frames::default(), output.function.start()));
        Self { running: running.collect(), row: 0 }
    }

    /// Replaces the content of `out` by the next document with its outputs. `document` has the [kept](Windows::kept) fields of
    /// that document; `scratch` is a buffer.
    ///
    /// # Errors
    /// Those of the functions.
    pub fn write(
        &mut self,
        windows: &Windows,
        partition: &Partition,
        document: Doc<'_>,
        scratch: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        if self.row >= partition.len() {
            return Err(Error::new(Code::INTERNAL_ERROR, "a partition has more documents than it was made of"));
        }
        out.clear();
        out.extend_from_slice(document.bytes());
        let columns = partition.columns.iter().map(Vec::as_slice);
        for ((output, (frames, running)), column) in windows.outputs().iter().zip(&mut self.running).zip(columns) {
            let range = match output.function {
                // Reads what it needs without a window.
                Function::Rank(_) | Function::Shift { .. } | Function::Fill { .. } | Function::MovingAverage { .. } => {
                    0..0
                }
                _ => frames.next(&output.frame, partition, self.row)?,
            };
            let slides = output.frame.slides();
            let value = running.value(&output.function, partition, column, self.row, range, slides)?;
            std::mem::swap(scratch, out);
            set(Doc::new(scratch), output.path.parts(), value.as_value(), out);
        }
        self.row += 1;
        Ok(())
    }
}
