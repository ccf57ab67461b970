use std::io;

use bson::RawDocumentBuf;
use bytes::Buf;
use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::{
    Compressor, HEADER, OP_COMPRESSED, OP_MSG, OP_REPLY, WireError,
    offload::{MAX_INLINE, offload},
};

/// The kind of message that a reply is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyKind {
    /// An `OP_REPLY` message, the reply to an `OP_QUERY`.
    Query,
    Message,
    /// `OP_MSG`, followed by further replies to the same request.
    MessageWithMore,
}

/// A reply before it is encoded.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) head: ReplyHead,
    pub(crate) document: RawDocumentBuf,
}

/// The fields of a reply's message, apart from its document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplyHead {
    pub(crate) id: i32,
    pub(crate) response_to: i32,
    pub(crate) kind: ReplyKind,
    pub(crate) compressor: Option<Compressor>,
}

/// Maximum length in bytes of a document that is appended to the head in one buffer, which costs less than sending two buffers.
const MOVED: usize = 16 << 10;

/// The fields of an `OP_REPLY` between its header and its only document: flags, cursor id, number of the first document, number of documents.
const BEFORE_DOCUMENT: [u8; 20] = [8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];

/// Documents of more than this many bytes are compressed into a buffer with [`ROOM`] reserved.
const LONG: usize = 1 << 20;

/// Bytes that are reserved to compress a long document, so that the buffer is not copied as it grows. Pages that are not written take no memory.
/// glibc returns allocations of more than 32 MiB to the system when they are freed.
const ROOM: usize = 33 << 20;

/// The bytes of a reply: the head, and the document if it is not part of the head.
pub(crate) struct Encoded {
    head: Vec<u8>,
    document: Vec<u8>,
}

impl Reply {
    /// Returns the bytes to send. A long document is compressed by a thread of the pool.
    ///
    /// # Errors
    /// Fails if the reply exceeds the maximum length, if the runtime shuts down, or if the compressor panics.
    pub(crate) async fn encoded(self) -> Result<Encoded, WireError> {
        let is_offloaded = self.head.compressor.is_some() && self.document.as_bytes().len() > MAX_INLINE;
        if is_offloaded { offload(|| self.encode()).await? } else { self.encode() }
    }

    /// Returns the bytes to send.
    ///
    /// # Errors
    /// Fails if the reply exceeds the maximum length.
    pub(crate) fn encode(self) -> Result<Encoded, WireError> {
        let Self { head: reply, document } = self;
        let (op_code, before): (_, &[u8]) = match reply.kind {
            ReplyKind::Query => (OP_REPLY, &BEFORE_DOCUMENT),
            ReplyKind::Message => (OP_MSG, &[0; 5]),
            ReplyKind::MessageWithMore => (OP_MSG, &[2, 0, 0, 0, 0]),
        };
        let mut document = document.into_bytes();
        let Some(compressor) = reply.compressor else {
            let (head, length) = (HEADER + before.len(), document.len());
            let mut encoded = if length > MOVED {
                Encoded { head: vec![0; head], document }
            } else {
                document.resize(head + length, 0);
                document.copy_within(..length, head);
                Encoded { head: document, document: Vec::new() }
            };
            encoded.head.get_mut(HEADER..head).into_iter().for_each(|place| place.copy_from_slice(before));
            return reply.with_header(encoded, op_code);
        };
        let parts = [before, &*document];
        let length =
            i32::try_from(parts.iter().map(|part| part.len()).sum::<usize>()).map_err(|_| WireError::Compressed)?;
        let mut compressed = Vec::new();
        if document.len() > LONG {
            // If that fails, the buffer grows as needed.
            let _ = compressed.try_reserve(ROOM);
        }
        compressed.resize(HEADER, 0);
        compressed.extend_from_slice(&op_code.to_le_bytes());
        compressed.extend_from_slice(&length.to_le_bytes());
        compressed.push(compressor.id());
        compressor.compress(parts, &mut compressed)?;
        reply.with_header(Encoded { head: compressed, document: Vec::new() }, OP_COMPRESSED)
    }
}

impl ReplyHead {
    fn with_header(&self, mut encoded: Encoded, op_code: i32) -> Result<Encoded, WireError> {
        let length = i32::try_from(encoded.len()).map_err(|_| WireError::Length(i32::MAX))?;
        let header = [length, self.id, self.response_to, op_code];
        let places = encoded.head.chunks_exact_mut(4);
        places.zip(header).for_each(|(place, part)| place.copy_from_slice(&part.to_le_bytes()));
        Ok(encoded)
    }
}

impl Encoded {
    pub(crate) fn len(&self) -> usize {
        self.head.len() + self.document.len()
    }

    /// Returns the bytes as one buffer.
    pub(crate) fn concat(&self) -> Vec<u8> {
        [&*self.head, &*self.document].concat()
    }

    /// Sends the bytes, and flushes: a TLS stream holds some of them back otherwise.
    pub(crate) async fn write_to(&self, writes: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        if self.document.is_empty() {
            writes.write_all(&self.head).await?;
        } else {
            writes.write_all_buf(&mut self.head.chain(&*self.document)).await?;
        }
        writes.flush().await
    }
}

#[cfg(test)]
mod tests {
    use bson::rawdoc;
    use tokio::io::{AsyncReadExt, BufWriter, duplex};

    use super::*;

    #[test]
    fn each_kind_of_reply_has_its_head_before_the_document() {
        let query = [&8_u32.to_le_bytes()[..], &[0; 12], &1_u32.to_le_bytes()].concat();
        let kinds = [
            (ReplyKind::Query, 1_i32, query),
            (ReplyKind::Message, 2013, vec![0; 5]),
            (ReplyKind::MessageWithMore, 2013, vec![2, 0, 0, 0, 0]),
        ];
        for (kind, op_code, before) in kinds {
            for length in [5, 300, MOVED, MOVED + 1] {
                let mut document = RawDocumentBuf::new();
                if length > 5 {
                    // The bytes of the element apart from its text: its type, its name and its length.
                    document.append(bson::cstr!("a"), "x".repeat(length - 5 - 8));
                }
                assert_eq!(document.as_bytes().len(), length);
                let head = ReplyHead { id: 7, response_to: 9, kind, compressor: None };
                let encoded = Reply { head, document: document.clone() }.encode().unwrap().concat();
                let all = i32::try_from(HEADER + before.len() + length).unwrap();
                let header = [all, 7, 9, op_code].map(i32::to_le_bytes).concat();
                assert!(encoded == [&*header, &*before, document.as_bytes()].concat(), "{kind:?}, {length}");
            }
        }
    }

    #[tokio::test]
    async fn nothing_of_a_reply_stays_in_a_buffer() {
        for text in ["short".to_owned(), "x".repeat(2 * MOVED)] {
            let document = rawdoc! { "text": text };
            let kind = ReplyKind::Message;
            let head = ReplyHead { id: 1, response_to: 2, kind, compressor: None };
            let encoded = Reply { head, document }.encode().unwrap();
            let (near, mut far) = duplex(4 * MOVED);
            let mut writes = BufWriter::with_capacity(4 * MOVED, near);
            encoded.write_to(&mut writes).await.unwrap();
            let mut read = vec![0; 4 * MOVED];
            let length = far.read(&mut read).await.unwrap();
            assert!(read.get(..length) == Some(&*encoded.concat()), "{length} bytes");
        }
    }
}
