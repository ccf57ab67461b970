use bson::RawDocument;

use super::{Compressor, HEADER, OP_COMPRESSED, OP_MSG, OP_REPLY, WireError};

/// How a reply is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyKind {
    /// `OP_REPLY`, to `OP_QUERY`.
    Query,
    Message,
    /// `OP_MSG`; other replies to the same request follow.
    MessageWithMore,
}

/// A reply before it is encoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reply<'r> {
    pub(crate) id: i32,
    pub(crate) response_to: i32,
    pub(crate) kind: ReplyKind,
    pub(crate) document: &'r RawDocument,
    pub(crate) compressor: Option<Compressor>,
}

impl Reply<'_> {
    /// Returns the bytes to send.
    ///
    /// # Errors
    /// Fails if the reply is longer than a length can say.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, WireError> {
        let document = self.document.as_bytes();
        let mut bytes = Vec::with_capacity(document.len() + 36);
        bytes.resize(HEADER, 0);
        let op_code = match self.kind {
            ReplyKind::Query => {
                // Flags, cursor id, first document and number of documents.
                bytes.extend_from_slice(&8_i32.to_le_bytes());
                bytes.extend_from_slice(&[0; 12]);
                bytes.extend_from_slice(&1_i32.to_le_bytes());
                OP_REPLY
            }
            ReplyKind::Message | ReplyKind::MessageWithMore => {
                let flags = if self.kind == ReplyKind::MessageWithMore { 2_u32 } else { 0 };
                bytes.extend_from_slice(&flags.to_le_bytes());
                bytes.push(0);
                OP_MSG
            }
        };
        bytes.extend_from_slice(document);
        let Some(compressor) = self.compressor else { return self.with_header(bytes, op_code) };
        let mut compressed = vec![0; HEADER];
        let plain = bytes.get(HEADER..).unwrap_or_default();
        compressed.extend_from_slice(&op_code.to_le_bytes());
        compressed.extend_from_slice(&i32::try_from(plain.len()).map_err(|_| WireError::Compressed)?.to_le_bytes());
        compressed.push(compressor.id());
        compressor.compress(plain, &mut compressed)?;
        self.with_header(compressed, OP_COMPRESSED)
    }

    fn with_header(&self, mut bytes: Vec<u8>, op_code: i32) -> Result<Vec<u8>, WireError> {
        let length = i32::try_from(bytes.len()).map_err(|_| WireError::Length(i32::MAX))?;
        let header = [length, self.id, self.response_to, op_code];
        bytes.chunks_exact_mut(4).zip(header).for_each(|(place, part)| place.copy_from_slice(&part.to_le_bytes()));
        Ok(bytes)
    }
}
