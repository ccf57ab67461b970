use std::{
    fs::File,
    io::{BufWriter, Read, Seek, SeekFrom, Write},
    ops::Range,
    sync::Arc,
};

use slate_query::work;

use super::{
    memory::Memory,
    row::{HEADER, Row, lengths},
};
use crate::{Error, Result};

/// Writes rows to a temporary file.
pub(super) struct RowWriter {
    file: BufWriter<File>,
    written: u64,
}

/// Largest buffer for reading or writing a file, in bytes: at this size a device spends its time on transfer, not on
/// seeking.
const MAX_BUFFER: usize = 256 << 10;
/// Smallest buffer, in bytes: below one page, system calls cost more than the copied data.
const MIN_BUFFER: usize = 4 << 10;

/// Returns the size in bytes of each of `buffers` that share the memory limit, from [`MIN_BUFFER`] to [`MAX_BUFFER`].
pub(super) fn buffer_size(memory: &Memory, buffers: usize) -> usize {
    (memory.limit() / buffers.max(1)).clamp(MIN_BUFFER, MAX_BUFFER)
}

impl RowWriter {
    pub(super) fn create(memory: &Memory) -> Result<Self> {
        Ok(Self { file: BufWriter::with_capacity(buffer_size(memory, 8), memory.create_file()?), written: 0 })
    }

    /// Returns the number of bytes written.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    pub(super) fn write(&mut self, row: Row<'_>) -> Result<()> {
        work::take_copied(row.written_len())?;
        let length = |part: usize| u32::try_from(part).unwrap_or(u32::MAX).to_le_bytes();
        let header = [length(row.key.len()), length(row.split), length(row.payload.len())];
        for part in [header.as_flattened(), row.key, row.payload] {
            self.file.write_all(part).map_err(write_failed)?;
        }
        self.written += u64::try_from(row.written_len()).unwrap_or(u64::MAX);
        Ok(())
    }

    /// Flushes the file and returns it for reading.
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

/// Reads the rows in a range of a temporary file. A row is lent until the next [`advance`](Self::advance).
#[derive(Debug)]
pub(super) struct RowReader {
    file: Arc<File>,
    /// The part of the range that has not been read into the buffer.
    unread: Range<u64>,
    buffer: Vec<u8>,
    buffer_size: usize,
    /// Position of the current row in the buffer; empty before the first row and after the last.
    row: Range<usize>,
}

impl RowReader {
    pub(super) fn new(file: Arc<File>, range: Range<u64>, buffer_size: usize) -> Self {
        Self { file, unread: range, buffer: Vec::new(), buffer_size, row: 0..0 }
    }

    pub(super) fn advance(&mut self) -> Result<bool> {
        let start = self.row.end;
        self.row = start..start;
        let start = self.fill(start, HEADER)?;
        if start == self.buffer.len() {
            return Ok(false);
        }
        let length = self.buffer.get(start..).and_then(lengths).map(|[key, _, payload]| HEADER + key + payload);
        let length = length.ok_or_else(ended_early)?;
        let start = self.fill(start, length)?;
        if self.buffer.len() - start < length {
            return Err(ended_early());
        }
        self.row = start..start + length;
        Ok(true)
    }

    /// Returns the bytes that the buffer takes.
    pub(super) fn held(&self) -> usize {
        self.buffer.capacity()
    }

    /// Frees the buffer except for the current row. The rows after it are read from the file again.
    pub(super) fn park(&mut self) {
        let behind = self.buffer.len().saturating_sub(self.row.end);
        self.unread.start = self.unread.start.saturating_sub(u64::try_from(behind).unwrap_or_default());
        self.buffer = self.buffer.get(self.row.clone()).unwrap_or_default().to_vec();
        self.row = 0..self.buffer.len();
    }

    #[inline]
    pub(super) fn current(&self) -> Option<Row<'_>> {
        self.buffer.get(self.row.clone()).and_then(Row::parse)
    }

    /// Fills the buffer until it has `length` bytes from `start` on, or all that remain. Returns the new position of `start`.
    fn fill(&mut self, start: usize, length: usize) -> Result<usize> {
        if self.buffer.len() - start >= length || self.unread.is_empty() {
            return Ok(start);
        }
        self.buffer.drain(..start);
        self.row = 0..0;
        let filled = self.buffer.len();
        let unread = usize::try_from(self.unread.end - self.unread.start).unwrap_or(usize::MAX);
        let more = (length.max(self.buffer_size) - filled).min(unread);
        work::take_copied(more)?;
        self.buffer.resize(filled + more, 0);
        let target = self.buffer.get_mut(filled..).unwrap_or_default();
        // All readers share the file and its position.
        let mut file = &*self.file;
        file.seek(SeekFrom::Start(self.unread.start)).map_err(read_failed)?;
        file.read_exact(target).map_err(read_failed)?;
        #[cfg(test)]
        BYTES_READ.set(BYTES_READ.get() + more);
        self.unread.start += u64::try_from(more).unwrap_or(u64::MAX);
        Ok(0)
    }
}

// The bytes that this thread has read from temporary files.
#[cfg(test)]
thread_local!(pub(super) static BYTES_READ: std::cell::Cell<usize> = const { std::cell::Cell::new(0) });

fn ended_early() -> Error {
    read_failed(std::io::ErrorKind::UnexpectedEof.into())
}
