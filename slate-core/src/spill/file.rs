use std::{
    fs::File,
    io::{BufWriter, Read, Seek, SeekFrom, Write},
    ops::Range,
    sync::Arc,
};

use super::{
    memory::Memory,
    row::{HEADER, Row, lengths},
};
use crate::{Error, Result};

/// Rows on their way into a temporary file, one after another.
pub(super) struct RowWriter {
    file: BufWriter<File>,
    written: u64,
}

/// Written and read in stretches of this size, where memory allows: enough for a device to be busy with transfer rather
/// than with seeking.
const LARGEST_BUFFER: usize = 256 << 10;
/// Below this, the calls to the operating system cost more than what they move.
const LEAST_BUFFER: usize = 4 << 10;

/// How large a buffer may be where that many share the memory.
pub(super) fn buffer_size(memory: &Memory, buffers: usize) -> usize {
    (memory.limit() / buffers.max(1)).clamp(LEAST_BUFFER, LARGEST_BUFFER)
}

impl RowWriter {
    pub(super) fn create(memory: &Memory) -> Result<Self> {
        Ok(Self { file: BufWriter::with_capacity(buffer_size(memory, 8), memory.create_file()?), written: 0 })
    }

    /// The bytes written so far.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    pub(super) fn write(&mut self, row: Row<'_>) -> Result<()> {
        let length = |part: usize| u32::try_from(part).unwrap_or(u32::MAX).to_le_bytes();
        let header = [length(row.key.len()), length(row.split), length(row.payload.len())];
        for part in [header.as_flattened(), row.key, row.payload] {
            self.file.write_all(part).map_err(write_failed)?;
        }
        self.written += u64::try_from(row.written_len()).unwrap_or(u64::MAX);
        Ok(())
    }

    /// The file, all written, to be read.
    pub(super) fn finish(self) -> Result<Arc<File>> {
        Ok(Arc::new(self.file.into_inner().map_err(|error| write_failed(error.into_error()))?))
    }
}

fn write_failed(error: std::io::Error) -> Error {
    Error::spill("a temporary file could not be written", error)
}

fn read_failed(error: std::io::Error) -> Error {
    Error::spill("a temporary file could not be read", error)
}

/// A stretch of a temporary file's rows, one at a time, lent until the next move.
#[derive(Debug)]
pub(super) struct RowReader {
    file: Arc<File>,
    /// What of the stretch has not been read into the buffer.
    unread: Range<u64>,
    buffer: Vec<u8>,
    buffer_size: usize,
    /// Where in the buffer the current row lies; empty before the first and after the last.
    row: Range<usize>,
}

impl RowReader {
    pub(super) fn new(file: Arc<File>, stretch: Range<u64>, buffer_size: usize) -> Self {
        Self { file, unread: stretch, buffer: Vec::new(), buffer_size, row: 0..0 }
    }

    pub(super) fn advance(&mut self) -> Result<bool> {
        let start = self.row.end;
        self.row = start..start;
        let start = self.hold(start, HEADER)?;
        if start == self.buffer.len() {
            return Ok(false);
        }
        let length = self.buffer.get(start..).and_then(lengths).map(|[key, _, payload]| HEADER + key + payload);
        let length = length.ok_or_else(ended_early)?;
        let start = self.hold(start, length)?;
        if self.buffer.len() - start < length {
            return Err(ended_early());
        }
        self.row = start..start + length;
        Ok(true)
    }

    #[inline]
    pub(super) fn current(&self) -> Option<Row<'_>> {
        self.buffer.get(self.row.clone()).and_then(Row::parse)
    }

    /// Makes the buffer hold `length` bytes from `start` on, or all there are; gives back where they begin then.
    fn hold(&mut self, start: usize, length: usize) -> Result<usize> {
        if self.buffer.len() - start >= length || self.unread.is_empty() {
            return Ok(start);
        }
        self.buffer.drain(..start);
        self.row = 0..0;
        let held = self.buffer.len();
        let unread = usize::try_from(self.unread.end - self.unread.start).unwrap_or(usize::MAX);
        let more = (length.max(self.buffer_size) - held).min(unread);
        self.buffer.resize(held + more, 0);
        let room = self.buffer.get_mut(held..).unwrap_or_default();
        // The file is one for all readers: each says anew where it reads.
        let mut file = &*self.file;
        file.seek(SeekFrom::Start(self.unread.start)).map_err(read_failed)?;
        file.read_exact(room).map_err(read_failed)?;
        self.unread.start += u64::try_from(more).unwrap_or(u64::MAX);
        Ok(0)
    }
}

fn ended_early() -> Error {
    read_failed(std::io::ErrorKind::UnexpectedEof.into())
}
