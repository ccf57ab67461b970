use std::{future::pending, time::Duration};

use bytes::{Buf, Bytes, BytesMut};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    time::timeout,
};

use super::{Request, WireError};

/// The bytes that are read ahead while a command runs: a pipelining client gets no further.
const READ_AHEAD: usize = 64 << 10;

/// A buffer that is longer is not kept for the next message.
const KEPT: usize = 64 << 10;

/// The most bytes for which memory is reserved before they have arrived.
const RESERVED: usize = 256 << 10;

/// How long the next bytes of a message that has begun may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Reads messages from a connection. Holds as many bytes as have arrived, whatever length a client announces.
pub(crate) struct Inbox<R> {
    stream: R,
    buffer: BytesMut,
}

impl<R: AsyncRead + Unpin> Inbox<R> {
    pub(crate) fn new(stream: R) -> Self {
        Self { stream, buffer: BytesMut::new() }
    }

    /// Waits for a whole message. `None` when the client has closed the connection between two messages. Nothing is lost when the
    /// future is dropped.
    ///
    /// # Errors
    /// Fails if the bytes are no message, or end or pause within one.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, WireError> {
        loop {
            let length = Request::length(&self.buffer)?;
            if let Some(length) = length.filter(|length| self.buffer.len() >= *length) {
                let frame = self.buffer.split_to(length).freeze();
                if self.buffer.is_empty() && length > KEPT {
                    self.buffer = BytesMut::new();
                }
                return Ok(Some(frame));
            }
            let missing = length.map_or(1 << 10, |length| length - self.buffer.len());
            // Grows with what arrives, by doubling.
            self.buffer.reserve(missing.min(self.buffer.len().max(RESERVED)));
            let has_begun = !self.buffer.is_empty();
            let read = self.stream.read_buf(&mut self.buffer);
            let read = if has_begun {
                timeout(PATIENCE, read).await.map_err(|_| WireError::Truncated("bytes for a minute"))??
            } else {
                read.await?
            };
            if read == 0 {
                return if self.buffer.has_remaining() { Err(WireError::Truncated("bytes")) } else { Ok(None) };
            }
        }
    }

    /// Returns when the client has closed the connection, while a command runs. Reads a little ahead. Nothing is lost when the future is
    /// dropped.
    pub(crate) async fn closed(&mut self) {
        while self.buffer.len() < READ_AHEAD {
            self.buffer.reserve(1 << 10);
            match self.stream.read_buf(&mut self.buffer).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
        // Whether it is still open shows when its requests are read.
        pending().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_arrive_in_pieces_and_many_at_once() {
        let message = |id: u8| [&[20, 0, 0, 0, id][..], &[0; 15]].concat();
        let (near, mut far) = tokio::io::duplex(64);
        let sent = [message(1), message(2), message(3)].concat();
        tokio::spawn(async move {
            for part in sent.chunks(7) {
                tokio::io::AsyncWriteExt::write_all(&mut far, part).await.unwrap();
            }
        });
        let mut inbox = Inbox::new(near);
        for id in [1, 2, 3] {
            assert_eq!(inbox.next().await.unwrap().unwrap(), message(id));
        }
        assert!(inbox.next().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn an_announced_length_reserves_no_memory() {
        let (near, mut far) = tokio::io::duplex(64);
        let length = i32::try_from(super::super::MAX_MESSAGE).unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut far, &length.to_le_bytes()).await.unwrap();
        let mut inbox = Inbox::new(near);
        let waits = timeout(Duration::from_millis(50), inbox.next()).await;
        assert!(waits.is_err() && inbox.buffer.capacity() < 2 * RESERVED, "{}", inbox.buffer.capacity());
    }
}
