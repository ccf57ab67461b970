use std::{
    fmt,
    io::{self, Cursor, Read},
};

/// Bytes read from the source at a time.
const CHUNK: usize = 1 << 16;

/// Consumed bytes that stay in front of the window. Older ones are dropped when there are more than twice as many.
const SLACK: usize = 1 << 20;

/// A position in a text, counted from 1. Columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) line: u64,
    pub(crate) column: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

impl Position {
    const FIRST: Self = Self { line: 1, column: 1 };

    fn after(self, bytes: &[u8]) -> Self {
        bytes.iter().fold(self, |Self { line, column }, byte| match byte {
            b'\n' => Self { line: line + 1, column: 1 },
            // Continuation bytes of a character in UTF-8.
            0x80..=0xbf => Self { line, column },
            _ => Self { line, column: column + 1 },
        })
    }
}

/// The part of a text from the record that is being read on. Offsets are bytes from the window's beginning.
pub(crate) struct Window {
    source: Box<dyn Read>,
    buffer: Vec<u8>,
    /// Where the window begins in the buffer.
    start: usize,
    position: Position,
    state: WindowState,
}

enum WindowState {
    Open,
    Ended,
    Failed(io::Error),
}

impl Window {
    pub(crate) fn new(source: Box<dyn Read>) -> Self {
        Self { source, buffer: Vec::new(), start: 0, position: Position::FIRST, state: WindowState::Open }
    }

    pub(crate) fn of_text(text: &str) -> Self {
        Self::new(Box::new(Cursor::new(text.to_owned().into_bytes())))
    }

    /// Returns the byte at an offset; `None` at the end of the text, or where the source failed.
    pub(crate) fn byte(&mut self, at: usize) -> Option<u8> {
        loop {
            if let Some(byte) = self.buffer.get(self.start + at) {
                return Some(*byte);
            }
            if !self.fill() {
                return None;
            }
        }
    }

    /// Returns the bytes from an offset on that are in memory.
    pub(crate) fn loaded(&self, from: usize) -> &[u8] {
        self.buffer.get(self.start + from..).unwrap_or_default()
    }

    /// Returns the bytes between two offsets, which must be in memory.
    pub(crate) fn bytes(&self, from: usize, to: usize) -> &[u8] {
        self.buffer.get(self.start + from..self.start + to).unwrap_or_default()
    }

    fn fill(&mut self) -> bool {
        if !matches!(self.state, WindowState::Open) {
            return false;
        }
        let length = self.buffer.len();
        let mut chunk = self.source.by_ref().take(CHUNK as u64);
        match chunk.read_to_end(&mut self.buffer) {
            Ok(0) => self.state = WindowState::Ended,
            Ok(_) => {}
            Err(error) => self.state = WindowState::Failed(error),
        }
        self.buffer.len() > length
    }

    /// Returns the failure of the source, once; `None` if it has not failed.
    pub(crate) fn take_failure(&mut self) -> Option<io::Error> {
        match std::mem::replace(&mut self.state, WindowState::Ended) {
            WindowState::Failed(error) => Some(error),
            state => {
                self.state = state;
                None
            }
        }
    }

    /// Returns the position of an offset that is in memory.
    pub(crate) fn position(&self, at: usize) -> Position {
        let end = self.buffer.len().min(self.start + at);
        self.position.after(self.buffer.get(self.start..end).unwrap_or_default())
    }

    /// Returns the number of blanks before the window on its line; 0 if the line has other characters there.
    pub(crate) fn indentation(&self) -> usize {
        let consumed = self.buffer.get(..self.start).unwrap_or_default();
        let line = consumed.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
        if line.iter().all(|byte| matches!(byte, b' ' | b'\t')) { line.len() } else { 0 }
    }

    /// Moves the window's beginning forward by `count` bytes, at most to the end of the bytes in memory.
    pub(crate) fn consume(&mut self, count: usize) {
        self.position = self.position(count);
        self.start = self.buffer.len().min(self.start + count);
        if self.start > 2 * SLACK {
            // `indentation` reads up to `SLACK` bytes before the beginning.
            self.buffer.drain(..self.start - SLACK);
            self.start = SLACK;
        }
    }
}
