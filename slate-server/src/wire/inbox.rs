use std::{future::pending, sync::Arc, time::Duration};

use bytes::{Buf, BytesMut};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    time::{Instant, timeout, timeout_at},
};

use super::{
    MessageMemory, Request, WireError,
    memory::Held,
    offload::{MAX_INLINE, offload},
};

/// Maximum bytes that are read ahead while a command runs; this limits pipelining clients.
const READ_AHEAD: usize = 64 << 10;

/// Maximum length in bytes of a buffer that is reused for the next message.
const LONGEST_REUSED: usize = 64 << 10;

/// Maximum bytes of memory that are reserved before they have arrived.
const RESERVED: usize = 256 << 10;

/// Timeout for the rest of a message, or for the next [`PROGRESS`] bytes of it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Bytes of a message after which [`PATIENCE`] begins again: what a client sends in that time at one kibibyte per second.
const PROGRESS: usize = 60 << 10;

/// Messages of at most this length do not count as message memory: every connection may have one.
const UNCOUNTED: usize = 64 << 10;

/// How long the bytes of a client are read and discarded after an error was sent to it, so that it can read the error.
const FAREWELL: Duration = Duration::from_secs(2);

/// Reads messages from a connection. Needs memory for the bytes that have arrived, not for the length that a client announces.
pub(crate) struct Inbox<R> {
    stream: R,
    buffer: BytesMut,
    held: Held,
    /// The progress of the current message; `None` between two messages.
    progress: Option<Progress>,
}

/// A complete message in the buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived {
    pub(crate) length: usize,
    /// Its announced length without compression; 0 if it is not compressed.
    plain: usize,
}

/// The progress of an arriving message. A client holds memory for a part of a message only as long as it sends more.
struct Progress {
    since: Instant,
    /// The bytes that had arrived at that time.
    length: usize,
}

impl Progress {
    fn begin() -> Self {
        Self { since: Instant::now(), length: 0 }
    }

    /// Returns the deadline for further bytes, if `length` bytes have arrived.
    fn end(&mut self, length: usize) -> Instant {
        if length.saturating_sub(self.length) >= PROGRESS {
            *self = Self { since: Instant::now(), length };
        }
        self.since + PATIENCE
    }
}

impl<R: AsyncRead + Unpin> Inbox<R> {
    pub(crate) fn new(stream: R, memory: Arc<MessageMemory>) -> Self {
        Self { stream, buffer: BytesMut::new(), held: Held::new(memory), progress: None }
    }

    /// Waits for a complete message of at most `most` bytes. Returns `None` if the client has closed the connection between two messages. Dropping
    /// the future loses no bytes.
    ///
    /// # Errors
    /// Fails if the bytes are not a message, are too many, end within a message or arrive too slowly.
    pub(crate) async fn arrived(&mut self, most: usize) -> Result<Option<Arrived>, WireError> {
        self.held.release();
        loop {
            let length = Request::length(&self.buffer)?;
            if let Some((length, id)) = length.zip(Request::id(&self.buffer)) {
                if length > most {
                    return Err(WireError::BeforeLogin { id, length, most });
                }
                let arrived = self.buffer.len().min(length);
                // A compressed message is decompressed when it is complete. If its header declares more bytes than are allowed, it is refused then.
                let plain = if arrived == length { Request::plain_memory(&self.buffer, most) } else { 0 };
                let needed = arrived.max(plain);
                if needed > UNCOUNTED && !self.held.grow_to(needed) {
                    // Drops the part of the message that has been read.
                    self.buffer = BytesMut::new();
                    self.held.release();
                    return Err(WireError::Memory { id, most: self.held.most() });
                }
            }
            if let Some(length) = length.filter(|length| *length <= self.buffer.len()) {
                self.progress = None;
                return Ok(Some(Arrived { length, plain: Request::plain_length(&self.buffer, most) }));
            }
            let missing = length.map_or(1 << 10, |length| length - self.buffer.len());
            // The buffer grows with the bytes that arrive, by doubling.
            self.buffer.reserve(missing.min(self.buffer.len().max(RESERVED)));
            let length = self.buffer.len();
            let end = (length > 0).then(|| self.progress.get_or_insert_with(Progress::begin).end(length));
            let arrived = self.stream.read_buf(&mut self.buffer);
            let arrived = match end {
                Some(end) => {
                    timeout_at(end, arrived).await.map_err(|_| WireError::Truncated("bytes, for too long a time"))??
                }
                None => arrived.await?,
            };
            if arrived == 0 {
                return if self.buffer.has_remaining() { Err(WireError::Truncated("bytes")) } else { Ok(None) };
            }
        }
    }

    /// Removes the message that has arrived, and returns the result of `read`; on a thread of the pool if decompression makes the message long.
    ///
    /// # Errors
    /// Fails if the runtime shuts down or `read` panics on a thread of the pool.
    pub(crate) async fn take<T: Send + 'static>(
        &mut self,
        Arrived { length, plain }: Arrived,
        read: impl FnOnce(&[u8]) -> T + Send + 'static,
    ) -> Result<T, WireError> {
        if plain > MAX_INLINE {
            let message = self.buffer.split_to(length).freeze();
            self.shorten();
            return offload(move || read(&message)).await;
        }
        let message = read(self.buffer.get(..length).unwrap_or_default());
        self.buffer.advance(length);
        if length > LONGEST_REUSED {
            self.shorten();
        }
        Ok(message)
    }

    /// Replaces the buffer of a long message, whose memory the first bytes of the next message would hold.
    fn shorten(&mut self) {
        self.buffer = BytesMut::from(self.buffer.chunk());
    }

    /// Whether the last message occupies memory that other connections compete for.
    pub(crate) fn holds_memory(&self) -> bool {
        self.held.holds_any()
    }

    /// Releases the memory of the last message, whose command has ended.
    pub(crate) fn release(&mut self) {
        self.held.release();
    }

    /// Reads and discards what a client still sends, for a short time.
    pub(crate) async fn discard(&mut self) {
        let all = async {
            loop {
                self.buffer.clear();
                self.buffer.reserve(1 << 10);
                if !matches!(self.stream.read_buf(&mut self.buffer).await, Ok(1..)) {
                    return;
                }
            }
        };
        let _ = timeout(FAREWELL, all).await;
    }

    /// Waits, while a command runs, until the client closes the connection. Reads a little ahead. Dropping the future loses no bytes.
    pub(crate) async fn closed(&mut self) {
        while self.buffer.len() < READ_AHEAD {
            self.buffer.reserve(1 << 10);
            match self.stream.read_buf(&mut self.buffer).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
        // The buffer is full. A closed connection is detected when its requests are read.
        pending().await
    }
}

#[cfg(test)]
mod tests {
    use super::{super::MAX_MESSAGE, *};

    /// The first bytes of a message of a length, with the id 7.
    fn header(length: usize) -> Vec<u8> {
        [i32::try_from(length).unwrap().to_le_bytes(), [7, 0, 0, 0]].concat()
    }

    /// Returns the next message.
    async fn next(inbox: &mut Inbox<impl AsyncRead + Unpin>, most: usize) -> Result<Option<Vec<u8>>, WireError> {
        let Some(arrived) = inbox.arrived(most).await? else { return Ok(None) };
        inbox.take(arrived, <[u8]>::to_vec).await.map(Some)
    }

    #[tokio::test]
    async fn a_message_that_is_long_without_compression_is_read_by_another_thread() {
        let compressed =
            |plain: i32| [[30, 7, 0, 2012, 2013, plain].map(i32::to_le_bytes).concat(), vec![1; 6]].concat();
        let long = i32::try_from(MAX_INLINE).unwrap();
        let sent = [compressed(long + 1), compressed(long), header(8 + 12), vec![0; 12]].concat();
        let (near, mut far) = tokio::io::duplex(1 << 10);
        tokio::io::AsyncWriteExt::write_all(&mut far, &sent).await.unwrap();
        let mut inbox = Inbox::new(near, Arc::new(MessageMemory::new(1 << 20)));
        let here = std::thread::current().id();
        for (length, is_here) in [(30, false), (30, true), (20, true)] {
            let arrived = inbox.arrived(MAX_MESSAGE).await.unwrap().unwrap();
            let read = |message: &[u8]| (message.len(), std::thread::current().id());
            let (read, thread) = inbox.take(arrived, read).await.unwrap();
            assert_eq!((read, thread == here), (length, is_here));
        }
    }

    #[tokio::test]
    async fn what_is_too_long_before_a_login_is_refused_by_its_header() {
        let (near, mut far) = tokio::io::duplex(64);
        tokio::io::AsyncWriteExt::write_all(&mut far, &header(1001)).await.unwrap();
        let mut inbox = Inbox::new(near, Arc::new(MessageMemory::new(1 << 20)));
        let refused = next(&mut inbox, 1000).await;
        assert!(matches!(refused, Err(WireError::BeforeLogin { id: 7, length: 1001, most: 1000 })), "{refused:?}");
    }

    #[tokio::test]
    async fn all_messages_together_have_a_limit_and_give_back_what_they_took() {
        let memory = Arc::new(MessageMemory::new(150 << 10));
        let message = [header(100 << 10), vec![0; (100 << 10) - 8]].concat();
        let inbox = || {
            let (near, mut far) = tokio::io::duplex(1 << 10);
            let message = message.clone();
            tokio::spawn(async move { tokio::io::AsyncWriteExt::write_all(&mut far, &message).await });
            Inbox::new(near, Arc::clone(&memory))
        };
        let (mut first, mut second, mut third) = (inbox(), inbox(), inbox());
        assert!(next(&mut first, MAX_MESSAGE).await.unwrap().is_some());
        let refused = next(&mut second, MAX_MESSAGE).await;
        assert!(matches!(refused, Err(WireError::Memory { id: 7, .. })), "{refused:?}");
        drop((first, second));
        assert!(next(&mut third, MAX_MESSAGE).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn a_compressed_message_takes_what_it_becomes() {
        let memory = Arc::new(MessageMemory::new(150 << 10));
        for (compressor, plain, is_refused) in
            [(1, 200 << 10, true), (1, 100 << 10, false), (1, 100 << 10, false), (3, 100 << 10, true)]
        {
            let head = [30, 7, 0, 2012, 2013, plain].map(i32::to_le_bytes).concat();
            let (near, mut far) = tokio::io::duplex(64);
            tokio::io::AsyncWriteExt::write_all(&mut far, &[&*head, &[compressor; 6]].concat()).await.unwrap();
            let mut inbox = Inbox::new(near, Arc::clone(&memory));
            let next = next(&mut inbox, MAX_MESSAGE).await;
            assert_eq!(matches!(next, Err(WireError::Memory { id: 7, .. })), is_refused, "{plain}: {next:?}");
        }
    }

    #[tokio::test]
    async fn a_long_message_leaves_no_long_buffer() {
        let length = 1 << 20;
        let sent = [header(length), vec![0; length - 8], header(16), vec![0; 4]].concat();
        let (near, mut far) = tokio::io::duplex(1 << 16);
        let sender =
            tokio::spawn(async move { tokio::io::AsyncWriteExt::write_all(&mut far, &sent).await.map(|()| far) });
        let mut inbox = Inbox::new(near, Arc::new(MessageMemory::new(4 << 20)));
        assert!(next(&mut inbox, MAX_MESSAGE).await.unwrap().is_some());
        let _far = sender.await.unwrap().unwrap();
        assert!(timeout(Duration::from_millis(20), next(&mut inbox, MAX_MESSAGE)).await.is_err());
        assert!(inbox.buffer.len() == 12 && inbox.buffer.capacity() < 4 * RESERVED, "{}", inbox.buffer.capacity());
    }

    #[tokio::test]
    async fn a_message_that_trickles_in_ends() {
        let (near, mut far) = tokio::io::duplex(64);
        tokio::io::AsyncWriteExt::write_all(&mut far, &header(1 << 20)).await.unwrap();
        let mut inbox = Inbox::new(near, Arc::new(MessageMemory::new(1 << 20)));
        assert!(timeout(Duration::from_millis(20), next(&mut inbox, MAX_MESSAGE)).await.is_err());
        let long_ago = || Instant::now().checked_sub(PATIENCE * 2).unwrap();
        inbox.progress = Some(Progress { since: long_ago(), length: 0 });
        assert!(matches!(next(&mut inbox, MAX_MESSAGE).await, Err(WireError::Truncated(_))));
        // Only the bytes after the deadline was set count, however many have arrived before.
        for (before, now, goes_on) in [(40 << 20, (40 << 20) + 100, false), (40 << 20, (40 << 20) + PROGRESS, true)] {
            let mut progress = Progress { since: long_ago(), length: before };
            assert_eq!(progress.end(now) > Instant::now(), goes_on);
        }
    }

    #[tokio::test]
    async fn a_message_that_was_executed_gives_its_memory_back() {
        let memory = Arc::new(MessageMemory::new(150 << 10));
        let message = [header(100 << 10), vec![0; (100 << 10) - 8]].concat();
        let (near, mut far) = tokio::io::duplex(1 << 20);
        tokio::io::AsyncWriteExt::write_all(&mut far, &message).await.unwrap();
        let mut inbox = Inbox::new(near, Arc::clone(&memory));
        assert!(next(&mut inbox, MAX_MESSAGE).await.unwrap().is_some());
        let mut other = Held::new(memory);
        assert!(!other.grow_to(100 << 10));
        inbox.release();
        assert!(other.grow_to(100 << 10));
    }

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
        let mut inbox = Inbox::new(near, Arc::new(MessageMemory::new(1 << 20)));
        for id in [1, 2, 3] {
            assert_eq!(next(&mut inbox, MAX_MESSAGE).await.unwrap().unwrap(), message(id));
        }
        assert!(next(&mut inbox, MAX_MESSAGE).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn an_announced_length_reserves_no_memory() {
        let (near, mut far) = tokio::io::duplex(64);
        let length = i32::try_from(MAX_MESSAGE).unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut far, &length.to_le_bytes()).await.unwrap();
        let mut inbox = Inbox::new(near, Arc::new(MessageMemory::new(1 << 20)));
        let waits = timeout(Duration::from_millis(50), next(&mut inbox, MAX_MESSAGE)).await;
        assert!(waits.is_err() && inbox.buffer.capacity() < 2 * RESERVED, "{}", inbox.buffer.capacity());
    }
}
