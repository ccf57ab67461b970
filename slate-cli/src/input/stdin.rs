use std::{
    io::{self, Cursor, Read},
    sync::mpsc::{Receiver, RecvTimeoutError, sync_channel},
    thread,
    time::Duration,
};

use crate::interrupt::{Cancelled, Interrupt};

/// Bytes that are read at a time.
const CHUNK: usize = 1 << 16;

/// Chunks that are read ahead.
const AHEAD: usize = 4;

/// How often a waiting read checks whether the command was cancelled.
const POLL: Duration = Duration::from_millis(20);

/// Standard input. Another thread reads it, so that a read that waits ends when the command is cancelled.
pub(crate) struct Stdin {
    chunks: Receiver<io::Result<Vec<u8>>>,
    chunk: Cursor<Vec<u8>>,
    interrupt: Interrupt,
}

impl Stdin {
    /// Starts the thread that reads.
    pub(crate) fn new(interrupt: Interrupt) -> Self {
        let (sender, chunks) = sync_channel(AHEAD);
        thread::spawn(move || {
            let mut input = io::stdin().lock();
            loop {
                let mut chunk = vec![0; CHUNK];
                let read = input.read(&mut chunk).map(|length| {
                    chunk.truncate(length);
                    chunk
                });
                let is_last =
                    read.as_ref().map_or_else(|error| error.kind() != io::ErrorKind::Interrupted, Vec::is_empty);
                if sender.send(read).is_err() || is_last {
                    return;
                }
            }
        });
        Self { chunks, chunk: Cursor::default(), interrupt }
    }
}

impl Read for Stdin {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.chunk.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            if self.interrupt.token().is_cancelled() {
                return Err(Cancelled.into());
            }
            match self.chunks.recv_timeout(POLL) {
                Ok(Ok(chunk)) if chunk.is_empty() => return Ok(0),
                Ok(chunk) => self.chunk = Cursor::new(chunk?),
                Err(RecvTimeoutError::Timeout) => {}
                // The thread has ended after the last chunk.
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
            }
        }
    }
}
